// Element types, devices, memory formats and the numbers that need a class of their own.
import { DeviceError, DTypeError, TypeError_ } from "./errors.js";

export type DTypeName =
  | "bool"
  | "uint8"
  | "int8"
  | "int16"
  | "int32"
  | "int64"
  | "float16"
  | "bfloat16"
  | "float32"
  | "float64"
  | "complex64"
  | "complex128";

/** An element type; compare with `===`. `String(dtype)` is PyTorch's name, "torch.float32". */
export class DType {
  constructor(
    readonly name: DTypeName,
    /** Number of the dtype in the core. */
    readonly code: number,
    /** Bytes of one element. */
    readonly itemsize: number,
  ) {}
  get isFloatingPoint(): boolean {
    return this.code >= 6 && this.code <= 9;
  }
  get isComplex(): boolean {
    return this.code >= 10;
  }
  toString(): string {
    return `torch.${this.name}`;
  }
}

export const bool = new DType("bool", 0, 1);
export const uint8 = new DType("uint8", 1, 1);
export const int8 = new DType("int8", 2, 1);
export const int16 = new DType("int16", 3, 2);
export const int32 = new DType("int32", 4, 4);
export const int64 = new DType("int64", 5, 8);
export const float16 = new DType("float16", 6, 2);
export const bfloat16 = new DType("bfloat16", 7, 2);
export const float32 = new DType("float32", 8, 4);
export const float64 = new DType("float64", 9, 8);
export const complex64 = new DType("complex64", 10, 8);
export const complex128 = new DType("complex128", 11, 16);

export {
  int16 as short,
  int32 as int,
  int64 as long,
  float16 as half,
  float32 as float,
  float64 as double,
  complex64 as cfloat,
  complex128 as cdouble,
};

/** All dtypes, by their number in the core. */
export const dtypes: readonly DType[] = [
  bool,
  uint8,
  int8,
  int16,
  int32,
  int64,
  float16,
  bfloat16,
  float32,
  float64,
  complex64,
  complex128,
];

const byName = new Map<string, DType>(dtypes.map((d) => [d.name, d]));

/** The dtype of a name such as "float32"; for files and options. */
export function dtypeOf(name: string): DType {
  const dtype = byName.get(name.replace(/^torch\./, ""));
  if (!dtype) throw new DTypeError(`dtype: expected a name such as "float32", got "${name}"`);
  return dtype;
}

const deviceTypes = ["cpu", "cuda", "meta"] as const;
export type DeviceType = (typeof deviceTypes)[number];

/** Where a tensor lives: `new Device("cuda", 1)` or `torch.device("cuda:1")`. */
export class Device {
  constructor(
    readonly type: DeviceType,
    /** Null for plain "cuda": the current CUDA device where it is used. */
    readonly index: number | null = type === "cuda" ? null : 0,
  ) {}
  /** Number of the device in the core. */
  get code(): number {
    return deviceTypes.indexOf(this.type) * 256 + (this.index ?? 255);
  }
  toString(): string {
    return this.type === "cuda" && this.index !== null ? `cuda:${this.index}` : this.type;
  }
  static fromCode(code: number): Device {
    return new Device(deviceTypes[code >> 8]!, code & 255);
  }
}

export type DeviceLike = Device | string;

/** The device of "cpu", "meta", "cuda" or "cuda:1". */
export function device(spec: DeviceLike): Device {
  if (spec instanceof Device) return spec;
  const match = typeof spec === "string" ? /^(cpu|cuda|meta)(?::(\d{1,2}))?$/.exec(spec) : null;
  if (!match) {
    throw new DeviceError(`device: expected "cpu", "meta" or "cuda:N", got ${String(spec)}`);
  }
  const type = match[1] as DeviceType;
  const index = type === "cuda" && match[2] !== undefined ? Number(match[2]) : undefined;
  return new Device(type, index);
}

/** PyTorch's name of the one layout there is. */
export const strided = "strided";

/** Memory formats, as the core numbers them. */
export const contiguousFormat = 0;
export const channelsLast = 1;
export const channelsLast3d = 2;
export const preserveFormat = 3;

/** A complex number: `new Complex(1, -2)`. */
export class Complex {
  constructor(
    readonly re: number,
    readonly im: number,
  ) {}
  toString(): string {
    return `${this.re}${this.im < 0 || Object.is(this.im, -0) ? "-" : "+"}${Math.abs(this.im)}j`;
  }
}

/** Shorthand of `new Complex(re, im)`. */
export function complexScalar(re: number, im: number): Complex {
  return new Complex(re, im);
}

/** A number that counts as a Python float even where its value is integral. */
export class FloatScalar {
  constructor(readonly value: number) {}
  valueOf(): number {
    return this.value;
  }
}

/**
 * Marks a number as a float for type promotion: `ints.mul(torch.asFloat(2))` is float32, while
 * `ints.mul(2)` stays int64, since JavaScript writes 2.0 and 2 alike.
 */
export function asFloat(value: number): FloatScalar {
  return new FloatScalar(value);
}

/** A number given to an operator. Integral numbers count as Python ints, others as floats. */
export type Scalar = number | boolean | bigint | Complex | FloatScalar;

/** Whether a value is a Scalar. */
export function isScalar(x: unknown): x is Scalar {
  const t = typeof x;
  return (
    t === "number" ||
    t === "boolean" ||
    t === "bigint" ||
    x instanceof Complex ||
    x instanceof FloatScalar
  );
}

/** The number of a real Scalar. */
export function toNumber(x: unknown, op: string, name: string): number {
  if (typeof x === "number") return x;
  if (typeof x === "boolean" || typeof x === "bigint" || x instanceof FloatScalar) return Number(x);
  throw new TypeError_(`${op}: expected a number for "${name}", got ${describe(x)}`);
}

/** A short description of a value for error messages. */
export function describe(x: unknown): string {
  if (x === null) return "null";
  if (Array.isArray(x)) return `an array of length ${x.length}`;
  if (typeof x === "object") return x.constructor?.name ?? "an object";
  if (typeof x === "string") return JSON.stringify(x.length > 40 ? `${x.slice(0, 40)}…` : x);
  if (typeof x === "function" || typeof x === "symbol") return `a ${typeof x}`;
  return String(x);
}
