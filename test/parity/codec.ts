// Turns the JSON encoding of the recorded cases into Cresset's values, and into plain arrays.
import { camelCase, fn, lookUp, method, Missing, type TensorLike, type TypedArray } from "./api.js";
import type { Fixture } from "./fixtures.js";

/** A tensor of a case: the key of its array and how PyTorch held it. */
export interface TensorCode {
  tensor: string;
  dtype: string;
  requires_grad?: boolean;
  stride?: number[];
  complex?: boolean;
}

/** A value as the cases write it; objects carry one telling key. */
export type Code =
  null | boolean | number | string | TensorCode | Code[] | { [key: string]: Code | undefined };

/** A recorded tensor as plain numbers; complex values are interleaved. */
export interface Values {
  dtype: string;
  shape: readonly number[];
  data: TypedArray;
}

export function isTensorCode(code: unknown): code is TensorCode {
  return typeof code === "object" && code !== null && "tensor" in code;
}

/** All tensors of a value, in the order in which PyTorch's recording saw them. */
export function tensorCodes(code: unknown): TensorCode[] {
  if (isTensorCode(code)) return [code];
  if (Array.isArray(code)) return code.flatMap(tensorCodes);
  if (typeof code !== "object" || code === null) return [];
  return Object.values(code).flatMap(tensorCodes);
}

const readers: Record<string, (bytes: Uint8Array) => TypedArray> = {
  F64: (bytes) => new Float64Array(bytes.buffer),
  F32: (bytes) => new Float32Array(bytes.buffer),
  F16: (bytes) => Float32Array.from(new Uint16Array(bytes.buffer), halfToNumber),
  BF16: (bytes) =>
    new Float32Array(Uint32Array.from(new Uint16Array(bytes.buffer), (bits) => bits << 16).buffer),
  I64: (bytes) => new BigInt64Array(bytes.buffer),
  I32: (bytes) => new Int32Array(bytes.buffer),
  I16: (bytes) => new Int16Array(bytes.buffer),
  I8: (bytes) => new Int8Array(bytes.buffer),
  U8: (bytes) => bytes,
  BOOL: (bytes) => bytes,
};

function halfToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** The numbers of a recorded tensor. */
export function recordedValues(fixture: Fixture<unknown>, code: TensorCode): Values {
  const { dtype, shape, bytes } = fixture.read(code.tensor);
  const read = readers[dtype];
  if (!read) throw new Error(`unknown array type ${dtype}`);
  return { dtype: code.dtype, shape: code.complex ? shape.slice(0, -1) : shape, data: read(bytes) };
}

/** Makes Cresset's values from a fixture's, on one device. */
export class Decoder {
  /** Tensors made so far that require a gradient, in order. */
  readonly leaves: TensorLike[] = [];

  constructor(
    private readonly fixture: Fixture<unknown>,
    private readonly device: string,
    private readonly withGrad = true,
  ) {}

  value(code: Code | undefined): unknown {
    if (isTensorCode(code)) return this.tensor(code);
    if (Array.isArray(code)) return code.map((item) => this.value(item));
    if (typeof code !== "object" || code === null) return code;
    const [kind, content] = Object.entries(code)[0] ?? ["nothing", null];
    switch (kind) {
      case "float":
        return float(Number(pythonNumber(content)));
      case "complex": {
        const [re, im] = content as string[];
        return fn("complexScalar")(Number(pythonNumber(re)), Number(pythonNumber(im)));
      }
      case "int":
        return BigInt(content as string);
      case "dtype":
        return constant(content as string);
      case "device":
        return this.device;
      case "enum":
        return constant(camelCase((content as string).replace("torch.", "")));
      case "slice":
        return fn("slice")(...(content as unknown[]));
      case "ellipsis":
        return "...";
      case "dict":
        return this.record(content as Record<string, Code>);
      default:
        throw new Error(`unknown encoding ${JSON.stringify(code)}`);
    }
  }

  /** A dictionary of arguments with camelCase keys; a device by name becomes the runner's. */
  record(codes: Record<string, Code>): Record<string, unknown> {
    const entries = Object.entries(codes).map(([key, code]) => [
      camelCase(key),
      key === "device" && code === "cpu" ? this.device : this.value(code),
    ]);
    return Object.fromEntries(entries);
  }

  tensor(code: TensorCode): TensorLike {
    const stored = this.fixture.read(code.tensor);
    const shape = code.complex ? stored.shape.slice(0, -1) : stored.shape;
    const tensor = makeTensor(stored.bytes, code.dtype, shape, this.device, code.stride);
    return this.lend(tensor, code);
  }

  /** Marks a tensor that stands for `code` as a leaf where the recording did. */
  lend(tensor: TensorLike, code: TensorCode): TensorLike {
    if (!code.requires_grad || !this.withGrad) return tensor;
    method(tensor, "requiresGrad_", true);
    this.leaves.push(tensor);
    return tensor;
  }
}

/** A tensor from raw bytes, laid out with `stride` where one is given. */
export function makeTensor(
  bytes: Uint8Array,
  dtypeName: string,
  shape: readonly number[],
  device: string,
  stride?: readonly number[],
): TensorLike {
  const dtype = constant(dtypeName);
  const count = shape.reduce((product, size) => product * size, 1);
  if (count === 0) return fn("empty")(shape, { dtype, device }) as TensorLike;
  const laidOut = stride ? layOut(bytes, bytes.length / count, shape, stride) : bytes;
  let flat = fn("frombuffer")(laidOut, { dtype });
  if (device !== "cpu") flat = method(flat, "to", device);
  const tensor = stride ? method(flat, "asStrided", shape, stride) : method(flat, "reshape", shape);
  return tensor as TensorLike;
}

/** Spreads row-major elements over a storage, so that `stride` finds them; overlaps agree. */
function layOut(
  bytes: Uint8Array,
  elementSize: number,
  shape: readonly number[],
  stride: readonly number[],
): Uint8Array {
  const last = shape.reduce((sum, size, axis) => sum + (size - 1) * stride[axis]!, 0);
  const storage = new Uint8Array((last + 1) * elementSize);
  const index = shape.map(() => 0);
  for (let from = 0; from < bytes.length; from += elementSize) {
    const to = index.reduce((sum, i, axis) => sum + i * stride[axis]!, 0) * elementSize;
    storage.set(bytes.subarray(from, from + elementSize), to);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      if (++index[axis]! < shape[axis]!) break;
      index[axis] = 0;
    }
  }
  return storage;
}

/** Python's float: where the value is integral, JavaScript needs to be told that it is one. */
function float(value: number): unknown {
  return Number.isInteger(value) ? fn("asFloat")(value) : value;
}

/** The number that Python's `repr` wrote. */
export function pythonNumber(text: unknown): number {
  if (text === "inf") return Infinity;
  if (text === "-inf") return -Infinity;
  return text === "nan" ? NaN : Number(text);
}

function constant(name: string): unknown {
  const value = lookUp(name);
  if (value === undefined) throw new Missing(`torch.${name} does not exist`);
  return value;
}
