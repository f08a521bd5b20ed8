// Seeding, and the random functions whose arguments come in several forms.
import type { DeviceLike, DType } from "./dtype.js";
import { TypeError_ } from "./errors.js";
import { isOptions } from "./frame.js";
import { readSeed, seedBits, type Generator } from "./generator.js";
import * as ops from "./ops.gen.js";
import type { Tensor } from "./tensor.js";

const defaultGenerator = 0;

/**
 * Starts the default generators of the CPU and of all CUDA devices over: the draws that follow are
 * PyTorch's, number for number.
 */
export function manualSeed(seed: number | bigint): void {
  ops._generatorManualSeed(defaultGenerator, seedBits("manualSeed", seed));
}

/** Seeds the default generator from the system's entropy and returns the seed. */
export function seed(): number {
  return ops._generatorSeed(defaultGenerator);
}

/** The seed that the default generator started from. */
export function initialSeed(): number | bigint {
  return readSeed(ops._generatorInitialSeed(defaultGenerator));
}

/** The state of the default generator as 5056 bytes, interchangeable with PyTorch's. */
export function getRngState(): Tensor {
  return ops._generatorGetState(defaultGenerator);
}

/** Restores a state of getRngState(). */
export function setRngState(state: Tensor): void {
  ops._generatorSetState(defaultGenerator, state);
}

/** Runs `fn` and puts the default generator back to where it was before. */
export function forkRng<R>(fn: () => R): R {
  const state = getRngState();
  try {
    return fn();
  } finally {
    setRngState(state);
  }
}

export interface RandomOptions {
  generator?: Generator | null;
  dtype?: DType | null;
  device?: DeviceLike | null;
  requiresGrad?: boolean;
}

type Size = number | readonly number[];

const splitOptions = (args: readonly unknown[]): [unknown[], Record<string, unknown>] => {
  const last = args.at(-1);
  return isOptions(last) ? [args.slice(0, -1), { ...last }] : [[...args], {}];
};

// Positional arguments first, then those given by name.
function take(op: string, names: string[], positional: unknown[], named: Record<string, unknown>) {
  if (positional.length > names.length) {
    throw new TypeError_(
      `${op}: expected at most ${names.length} arguments, got ${positional.length}`,
    );
  }
  return names.map((name, i) => {
    const value = i < positional.length ? positional[i] : named[name];
    delete named[name];
    return value;
  });
}

/** Integers in [low, high), or in [0, high): `randint(10, [2, 3])`, `randint(5, 10, [2])`. */
export function randint(high: number, size: Size, options?: RandomOptions): Tensor;
export function randint(low: number, high: number, size: Size, options?: RandomOptions): Tensor;
export function randint(...args: unknown[]): Tensor {
  const [positional, named] = splitOptions(args);
  const short = positional.length === 2 && !("high" in named) && !("size" in named);
  const onlyHigh = short || (positional.length < 2 && !("low" in named));
  const names =
    onlyHigh || ("size" in named && positional.length === 1 && !("high" in named))
      ? ["high", "size"]
      : ["low", "high", "size"];
  const values = take("randint", names, positional, named);
  if (names.length === 2) values.unshift(0);
  const [low, high, size] = values as [number, number, Size];
  return ops._randint(low, high, size as readonly number[], named as RandomOptions);
}

/** Integers in [low, high), or in [0, high), in the shape of another tensor. */
export function randintLike(input: Tensor, high: number, options?: RandomOptions): Tensor;
export function randintLike(
  input: Tensor,
  low: number,
  high: number,
  options?: RandomOptions,
): Tensor;
export function randintLike(input: Tensor, ...args: unknown[]): Tensor {
  const [positional, named] = splitOptions(args);
  const one = positional.length + Number("high" in named) + Number("low" in named) === 1;
  const values = take("randintLike", one ? ["high"] : ["low", "high"], positional, named);
  if (one) values.unshift(0);
  const [low, high] = values as [number, number];
  return ops._randintLike(input, low, high, named as RandomOptions);
}

type Parameter = Tensor | number;

/** Normal numbers: mean and std may be tensors, one number per element; two numbers need a size. */
export function normal(
  mean: Parameter,
  std?: Parameter,
  options?: { generator?: Generator | null },
): Tensor;
export function normal(mean: number, std: number, size: Size, options?: RandomOptions): Tensor;
export function normal(...args: unknown[]): Tensor {
  const [positional, named] = splitOptions(args);
  const [mean, std, size] = take("normal", ["mean", "std", "size"], positional, named);
  delete named["layout"];
  if (size !== undefined) {
    return ops._normalSized(
      mean as number,
      std as number,
      size as readonly number[],
      named as RandomOptions,
    );
  }
  const operand = (x: unknown, fallback: number) => (x === undefined ? fallback : x) as Tensor;
  return ops._normalTensors(operand(mean, 0), operand(std, 1), named as RandomOptions);
}

/** Fills with integers in [from, to), in [0, to), or in the whole range of the dtype. */
export function random_(self: Tensor, ...args: unknown[]): Tensor {
  const [positional, named] = splitOptions(args);
  const names = positional.length === 1 && !("to" in named) ? ["to"] : ["from", "to"];
  const values = take("random_", names, positional, named) as (number | null | undefined)[];
  const [from, to] = names.length === 1 ? [null, values[0]] : values;
  return ops._random_(self, from ?? null, to ?? null, named as RandomOptions);
}

/** Methods that PyTorch's tensors have under several signatures. */
export const randomMethods = {
  random_(this: Tensor, ...args: unknown[]): Tensor {
    return random_(this, ...args);
  },
};

declare module "./tensor.js" {
  interface Tensor {
    /** Fills with integers: in [from, to), in [0, to), or all that the dtype holds. */
    random_(options?: { generator?: Generator | null }): this;
    random_(to: number, options?: { generator?: Generator | null }): this;
    random_(from: number, to: number | null, options?: { generator?: Generator | null }): this;
  }
}
