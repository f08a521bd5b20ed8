// Writes arguments into the frame that the core reads, and takes results out of it.
import { backend, onConnect } from "./backend.js";
import {
  Complex,
  describe,
  device as toDevice,
  DType,
  dtypeOf,
  FloatScalar,
  toNumber,
  type DeviceLike,
  type Scalar,
} from "./dtype.js";
import { TypeError_, ValueError } from "./errors.js";
import { Generator } from "./generator.js";
import { Tensor } from "./tensor.js";

/** The frame: see Note [Frame encoding] in core/dispatch/frame.h. */
export let f: Float64Array = new Float64Array(4096);
const moved = (frame: Float64Array) => void (f = frame);
onConnect((core) => (f = core.frame(f.length, moved)));

/** Makes room for n more doubles from position p. */
export function need(p: number, n: number): void {
  if (p + n <= f.length) return;
  f = backend.frame(Math.max(f.length * 2, p + n), moved);
}

/** The id of a tensor argument. */
export function id(x: unknown, op: string, name: string): number {
  if (x instanceof Tensor) {
    const held = x._id;
    if (held >= 0) return held;
    throw new ValueError(`${op}: the tensor given for "${name}" has been disposed`);
  }
  throw new TypeError_(`${op}: expected a Tensor for "${name}", got ${describe(x)}`);
}

/** A tensor argument of a function that asks it before it calls an operator. */
export function checkTensor(x: unknown, op: string, name: string): asserts x is Tensor {
  id(x, op, name);
}

export function idOrNone(x: unknown, op: string, name: string): number {
  return x === undefined || x === null ? -1 : id(x, op, name);
}

function putBigInt(p: number, x: bigint, op: string, name: string): void {
  if (x < -(2n ** 63n) || x >= 2n ** 63n) {
    throw new ValueError(`${op}: expected "${name}" to fit int64, got ${x}`);
  }
  f[p] = 6;
  f[p + 1] = Number(x >> 32n);
  f[p + 2] = Number(x & 0xffffffffn);
}

/** A number, in three doubles. */
export function scalar(p: number, x: unknown, op: string, name: string): void {
  if (typeof x === "number") {
    f[p] = Number.isSafeInteger(x) ? 3 : 4;
    f[p + 1] = x;
    // -0 is a float: an int would lose its sign.
    if (x === 0 && Object.is(x, -0)) f[p] = 4;
  } else if (typeof x === "boolean") {
    f[p] = 2;
    f[p + 1] = x ? 1 : 0;
  } else if (x instanceof FloatScalar) {
    f[p] = 4;
    f[p + 1] = x.value;
  } else if (typeof x === "bigint") {
    putBigInt(p, x, op, name);
  } else if (x instanceof Complex) {
    f[p] = 5;
    f[p + 1] = x.re;
    f[p + 2] = x.im;
  } else {
    throw new TypeError_(`${op}: expected a number for "${name}", got ${describe(x)}`);
  }
}

/** A tensor or a number, in three doubles. */
export function operand(p: number, x: unknown, op: string, name: string): void {
  if (x instanceof Tensor) {
    f[p] = 1;
    f[p + 1] = id(x, op, name);
    return;
  }
  if (typeof x === "object" && !(x instanceof Complex) && !(x instanceof FloatScalar)) {
    throw new TypeError_(`${op}: expected a Tensor or a number for "${name}", got ${describe(x)}`);
  }
  scalar(p, x, op, name);
}

export function scalarOrNone(p: number, x: unknown, op: string, name: string): void {
  if (x === undefined || x === null) f[p] = 0;
  else scalar(p, x, op, name);
}

export function operandOrNone(p: number, x: unknown, op: string, name: string): void {
  if (x === undefined || x === null) f[p] = 0;
  else operand(p, x, op, name);
}

/** An integer. */
export function int(x: unknown, op: string, name: string): number {
  if (typeof x === "number" && Number.isSafeInteger(x)) return x;
  if (typeof x === "bigint" && Number.isSafeInteger(Number(x))) return Number(x);
  if (typeof x === "boolean") return x ? 1 : 0;
  if (x === undefined) throw new TypeError_(`${op}: missing argument "${name}"`);
  throw new TypeError_(`${op}: expected an integer for "${name}", got ${describe(x)}`);
}

/** A real number. */
export function float(x: unknown, op: string, name: string): number {
  if (typeof x === "number") return x;
  if (x === undefined) throw new TypeError_(`${op}: missing argument "${name}"`);
  return toNumber(x, op, name);
}

export function flag(x: unknown, op: string, name: string): number {
  if (x === true || x === 1) return 1;
  if (x === false || x === 0) return 0;
  throw new TypeError_(`${op}: expected true or false for "${name}", got ${describe(x)}`);
}

export function intOrNone(p: number, x: unknown, op: string, name: string): void {
  const given = x !== undefined && x !== null;
  f[p] = given ? 1 : 0;
  f[p + 1] = given ? int(x, op, name) : 0;
}

export function floatOrNone(p: number, x: unknown, op: string, name: string): void {
  const given = x !== undefined && x !== null;
  f[p] = given ? 1 : 0;
  f[p + 1] = given ? float(x, op, name) : 0;
}

export function flagOrNone(x: unknown, op: string, name: string): number {
  return x === undefined || x === null ? -1 : flag(x, op, name);
}

export function dtypeCode(x: unknown, op: string, name: string): number {
  if (x instanceof DType) return x.code;
  if (typeof x === "string") return dtypeOf(x).code;
  throw new TypeError_(`${op}: expected a dtype for "${name}", got ${describe(x)}`);
}

export function dtypeOrNone(x: unknown, op: string, name: string): number {
  return x === undefined || x === null ? -1 : dtypeCode(x, op, name);
}

export function deviceCode(x: unknown): number {
  return toDevice(x as DeviceLike).code;
}

export function deviceOrNone(x: unknown): number {
  return x === undefined || x === null ? -1 : deviceCode(x);
}

/** The number of a generator; 0 is the default one. */
export function generatorOrNone(x: unknown, op: string, name: string): number {
  if (x === undefined || x === null) return 0;
  if (x instanceof Generator) return x._id;
  throw new TypeError_(`${op}: expected a Generator for "${name}", got ${describe(x)}`);
}

/** One of an enumeration's names, as its number. */
export function choice(x: unknown, names: readonly string[], op: string, name: string): number {
  const at = names.indexOf(x as string);
  if (at >= 0) return at;
  const list = names.map((n) => `"${n}"`).join(", ");
  throw new ValueError(`${op}: expected one of ${list} for "${name}", got ${describe(x)}`);
}

function listOf(x: unknown, op: string, name: string, what: string): ArrayLike<unknown> {
  if (Array.isArray(x)) return x;
  if (ArrayBuffer.isView(x) && !(x instanceof DataView)) return x as unknown as ArrayLike<unknown>;
  if (x === undefined) throw new TypeError_(`${op}: missing argument "${name}"`);
  throw new TypeError_(`${op}: expected ${what} for "${name}", got ${describe(x)}`);
}

/** A list of integers; a single one stands for `repeat` copies. Returns the next position. */
export function ints(p: number, x: unknown, op: string, name: string, repeat: number): number {
  if (typeof x === "number" || typeof x === "bigint") {
    const v = int(x, op, name);
    need(p, repeat + 1);
    f[p++] = repeat;
    for (let i = 0; i < repeat; i++) f[p++] = v;
    return p;
  }
  const list = listOf(x, op, name, "a list of integers");
  need(p, list.length + 1);
  f[p++] = list.length;
  for (let i = 0; i < list.length; i++) f[p++] = int(list[i], op, name);
  return p;
}

export function intsOrNone(p: number, x: unknown, op: string, name: string, n: number): number {
  if (x !== undefined && x !== null) return ints(p, x, op, name, n);
  need(p, 1);
  f[p] = -1;
  return p + 1;
}

export function floats(p: number, x: unknown, op: string, name: string): number {
  const list = listOf(x, op, name, "a list of numbers");
  need(p, list.length + 1);
  f[p++] = list.length;
  for (let i = 0; i < list.length; i++) f[p++] = float(list[i], op, name);
  return p;
}

export function floatsOrNone(p: number, x: unknown, op: string, name: string): number {
  if (x !== undefined && x !== null) return floats(p, x, op, name);
  need(p, 1);
  f[p] = -1;
  return p + 1;
}

export function scalars(p: number, x: unknown, op: string, name: string): number {
  const list = listOf(x, op, name, "a list of numbers");
  need(p, list.length * 3 + 1);
  f[p++] = list.length;
  for (let i = 0; i < list.length; i++, p += 3) scalar(p, list[i], op, name);
  return p;
}

export function tensors(p: number, x: unknown, op: string, name: string): number {
  const list = listOf(x, op, name, "a list of Tensors");
  need(p, list.length + 1);
  f[p++] = list.length;
  for (let i = 0; i < list.length; i++) f[p++] = id(list[i], op, name);
  return p;
}

export function tensorsOrNone(p: number, x: unknown, op: string, name: string): number {
  const list = listOf(x, op, name, "a list of Tensors or nulls");
  need(p, list.length + 1);
  f[p++] = list.length;
  for (let i = 0; i < list.length; i++) f[p++] = idOrNone(list[i], op, name);
  return p;
}

export function text(p: number, x: unknown, op: string, name: string): number {
  if (typeof x !== "string") {
    throw new TypeError_(`${op}: expected a string for "${name}", got ${describe(x)}`);
  }
  need(p, x.length + 1);
  f[p++] = x.length;
  for (let i = 0; i < x.length; i++) f[p++] = x.charCodeAt(i) & 127;
  return p;
}

// ---- results

let observer: ((made: Tensor) => void) | null = null;

/** Has `watch` told of every tensor that an operator makes; null ends that. */
export function observe(watch: ((made: Tensor) => void) | null): void {
  observer = watch;
}

/** Calls an operator whose result is one tensor. */
export function one(op: number): Tensor {
  const out = new Tensor();
  backend.callInto(op, out);
  out._id = f[1]!;
  if (observer !== null) observer(out);
  return out;
}

/** Calls an operator whose result is one tensor or nothing. */
export function oneOrNull(op: number): Tensor | null {
  backend.call(op);
  return f[1]! < 0 ? null : adopt(f[1]!);
}

function adopt(handle: number): Tensor {
  const t = new Tensor();
  t._id = handle;
  backend.adopt(handle, t);
  if (observer !== null) observer(t);
  return t;
}

/** Calls an operator with several tensors as its result; missing ones are null. */
export function many(op: number): (Tensor | null)[] {
  backend.call(op);
  const ids = Array.from(f.subarray(1, 1 + f[0]!));
  return ids.map((i) => (i < 0 ? null : adopt(i)));
}

/** Calls an operator for its effect. */
export function none(op: number): void {
  backend.call(op);
}

function readScalar(p: number): number | bigint | boolean | Complex {
  const a = f[p + 1]!;
  const b = f[p + 2]!;
  switch (f[p]) {
    case 2:
      return a !== 0;
    case 5:
      return new Complex(a, b);
    case 6:
      return (BigInt(a) << 32n) + BigInt(b);
    default:
      return a;
  }
}

/** Calls an operator whose result is a number. */
export function value(op: number): number | bigint | boolean | Complex {
  backend.call(op);
  return readScalar(1);
}

/** Calls an operator whose result is a list of integers. */
export function numbers(op: number): number[] {
  backend.call(op);
  const n = f[0]!;
  const out = new Array<number>(n);
  for (let i = 0; i < n; i++) out[i] = Number(readScalar(1 + 3 * i));
  return out;
}

/** Several named results: an iterable with numbered and named members, as a named tuple. */
export type Named<N extends string> = { readonly [K in N]: Tensor } & Iterable<Tensor> & {
    readonly [index: number]: Tensor;
    readonly length: number;
  };

const tuplePrototype = {
  *[Symbol.iterator](this: Named<string>): Iterator<Tensor> {
    for (let i = 0; i < this.length; i++) yield this[i]!;
  },
};

/** Calls an operator with named results. */
export function named<N extends string>(op: number, names: readonly N[]): Named<N> {
  const list = many(op);
  const tuple = Object.create(tuplePrototype) as Record<string | number, unknown>;
  list.forEach((t, i) => {
    tuple[i] = t;
    tuple[names[i]!] = t;
  });
  Object.defineProperty(tuple, "length", { value: list.length });
  return tuple as Named<N>;
}

/** Whether a trailing argument is the object of named arguments. */
export function isOptions(x: unknown): x is Record<string, unknown> {
  return (
    typeof x === "object" &&
    x !== null &&
    !(x instanceof Tensor) &&
    Object.getPrototypeOf(x) === Object.prototype
  );
}

/** Refuses names that the operator does not have. */
export function checkNames(op: string, options: object, names: readonly string[]): void {
  if (typeof options !== "object" || options === null) {
    throw new TypeError_(`${op}: expected named arguments in an object, got ${describe(options)}`);
  }
  for (const key in options) {
    if (!names.includes(key)) {
      throw new TypeError_(
        `${op}: unexpected argument "${key}"; expected one of ${names.join(", ")}`,
      );
    }
  }
}

/** Where a required argument is missing. */
export function missing(op: string, name: string): never {
  throw new TypeError_(`${op}: missing argument "${name}"`);
}

/** Refuses more positional arguments than there are. */
export function checkCount(op: string, given: number, most: number): void {
  if (given > most) {
    throw new TypeError_(`${op}: expected at most ${most} arguments, got ${given}`);
  }
}

export type { DeviceLike, DType, Scalar };
