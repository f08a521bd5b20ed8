// torch.autograd: backward, grad, gradient modes and a view of the recorded graph.
import "./dispose_symbol.js";
import { AutogradError } from "./errors.js";
import { checkNames } from "./frame.js";
import * as ops from "./ops.gen.js";
import type { Tensor } from "./tensor.js";

type Tensors = Tensor | readonly Tensor[];
type Gradients = Tensor | null | readonly (Tensor | null)[] | undefined;

function list<T>(x: T | readonly T[]): readonly T[] {
  return Array.isArray(x) ? (x as readonly T[]) : [x as T];
}

export interface BackwardCallOptions {
  retainGraph?: boolean | undefined;
  createGraph?: boolean | undefined;
  inputs?: Tensors | undefined;
}

/** Accumulates gradients of `tensors` into the `.grad` of the leaves they came from. */
export function backward(
  tensors: Tensors,
  gradTensors?: Gradients,
  options: BackwardCallOptions = {},
): void {
  checkNames("backward", options, ["gradient", "retainGraph", "createGraph", "inputs"]);
  const create = options.createGraph ?? false;
  const roots = list(tensors);
  const grads = gradTensors == null ? [] : list<Tensor | null>(gradTensors);
  const inputs = options.inputs === undefined ? [] : list(options.inputs);
  ops._backward(roots, grads, inputs, options.retainGraph ?? create, create);
}

export interface GradOptions {
  gradOutputs?: Gradients;
  retainGraph?: boolean;
  createGraph?: boolean;
  allowUnused?: boolean;
}

/** Gradients of `outputs` by `inputs`; null for an unused input when `allowUnused` is set. */
export function grad(
  outputs: Tensors,
  inputs: Tensors,
  options: GradOptions = {},
): (Tensor | null)[] {
  const create = options.createGraph ?? false;
  return ops._grad(
    list(outputs),
    options.gradOutputs == null ? [] : list<Tensor | null>(options.gradOutputs),
    list(inputs),
    options.retainGraph ?? create,
    create,
    options.allowUnused ?? false,
  );
}

/** Switches recording until disposed: `using _ = torch.noGrad()`. */
export class GradModeGuard {
  private readonly previous: boolean;
  private open = true;
  constructor(enabled: boolean) {
    this.previous = ops._setGradEnabled(enabled);
  }
  [Symbol.dispose](): void {
    if (this.open) ops._setGradEnabled(this.previous);
    this.open = false;
  }
}

function withMode<R>(name: string, enabled: boolean, fn: () => R): R {
  const previous = ops._setGradEnabled(enabled);
  try {
    const result = fn();
    if (result instanceof Promise) {
      throw new AutogradError(
        `${name}: the function returned a promise; the mode would end before it does. ` +
          `Await first and put only the synchronous part inside ${name}`,
      );
    }
    return result;
  } finally {
    ops._setGradEnabled(previous);
  }
}

/** Runs `fn` without recording; without an argument, a guard for `using`. */
export function noGrad(): GradModeGuard;
export function noGrad<R>(fn: () => R): R;
export function noGrad<R>(fn?: () => R): R | GradModeGuard {
  return fn ? withMode("noGrad", false, fn) : new GradModeGuard(false);
}

/** Runs `fn` with recording, inside noGrad for example. */
export function enableGrad(): GradModeGuard;
export function enableGrad<R>(fn: () => R): R;
export function enableGrad<R>(fn?: () => R): R | GradModeGuard {
  return fn ? withMode("enableGrad", true, fn) : new GradModeGuard(true);
}

/** Runs `fn` with recording on or off; without `fn`, switches for good. */
export function setGradEnabled(mode: boolean): GradModeGuard;
export function setGradEnabled<R>(mode: boolean, fn: () => R): R;
export function setGradEnabled<R>(mode: boolean, fn?: () => R): R | GradModeGuard {
  return fn ? withMode("setGradEnabled", mode, fn) : new GradModeGuard(mode);
}

/** A node of the recorded graph. */
export class GradFn {
  private constructor(
    private readonly tensor: Tensor,
    private readonly path: readonly number[],
    /** PyTorch's name of the node: "MulBackward0". */
    readonly name: string,
  ) {}
  static of(tensor: Tensor, path: readonly number[] = []): GradFn {
    return new GradFn(tensor, path, String.fromCharCode(...ops._nodeName(tensor, path)));
  }
  /** The nodes that gradients flow to next, each with the number of its output. */
  get nextFunctions(): readonly (readonly [GradFn | null, number])[] {
    return ops
      ._nodeEdges(this.tensor, this.path)
      .map((input, i) =>
        input < 0
          ? ([null, 0] as const)
          : ([GradFn.of(this.tensor, [...this.path, i]), input] as const),
      );
  }
  toString(): string {
    return `<${this.name}>`;
  }
}
