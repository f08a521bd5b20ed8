// Between tensors and JavaScript values: typed arrays, nested arrays, bytes.
import { backend } from "./backend.js";
import * as dt from "./dtype.js";
import { describe, type DeviceLike, type DType, type Scalar } from "./dtype.js";
import { DTypeError, ShapeError, TypeError_, ValueError } from "./errors.js";
import { checkNames } from "./frame.js";
import * as ops from "./ops.gen.js";
import { Tensor } from "./tensor.js";

export type TypedArray =
  Uint8Array | Int8Array | Int16Array | Int32Array | BigInt64Array | Float32Array | Float64Array;

/** Nested arrays of numbers, or one number. */
export type Nested = Scalar | Nested[];

export interface TensorOptions {
  dtype?: DType;
  device?: DeviceLike;
  requiresGrad?: boolean;
}

/** What torch.tensor() accepts. */
export type TensorData = Scalar | TypedArray | ArrayBufferView | readonly TensorData[] | Tensor;

const arrayTypes = new Map<DType, new (buffer: ArrayBuffer) => TypedArray>([
  [dt.bool, Uint8Array],
  [dt.uint8, Uint8Array],
  [dt.int8, Int8Array],
  [dt.int16, Int16Array],
  [dt.int32, Int32Array],
  [dt.int64, BigInt64Array],
  [dt.float32, Float32Array],
  [dt.float64, Float64Array],
  [dt.complex64, Float32Array],
  [dt.complex128, Float64Array],
]);

/** The elements' bytes in row-major order, copied. */
export function toBytes(t: Tensor): Uint8Array<ArrayBuffer> {
  const plain = ops.detach(t);
  const here = ops._toDevice(plain, "cpu");
  const whole = ops.contiguous(here);
  const bytes = new Uint8Array(whole.numel() * whole.dtype.itemsize);
  backend.read(whole._id, bytes);
  for (const step of [plain, here, whole]) step.dispose();
  return bytes;
}

/** A tensor of the given bytes, copied. */
export function fromBytes(
  dtype: DType,
  shape: readonly number[],
  bytes: Uint8Array,
  options: TensorOptions = {},
): Tensor {
  const t = ops.empty(shape, { dtype });
  // A bool has two values: other bytes would be undefined behaviour in the core.
  backend.write(t._id, dtype === dt.bool ? bytes.map((b) => (b ? 1 : 0)) : bytes);
  const placed = options.device === undefined ? t : ops._toDevice(t, options.device);
  return options.requiresGrad ? placed.requiresGrad_(true) : placed;
}

/** The values in row-major order; half types as float32, complex numbers as pairs. */
export function gatherData(t: Tensor): TypedArray {
  const half = t.dtype === dt.float16 || t.dtype === dt.bfloat16;
  const source = half ? ops._toDtype(ops.detach(t), dt.float32) : t;
  return new (arrayTypes.get(source.dtype)!)(toBytes(source).buffer);
}

function readValue(data: TypedArray, i: number, dtype: DType): Scalar {
  if (dtype.isComplex) return new dt.Complex(Number(data[2 * i]), Number(data[2 * i + 1]));
  const v = data[i]!;
  if (dtype === dt.bool) return v !== 0;
  return typeof v === "bigint" && Number.isSafeInteger(Number(v)) ? Number(v) : v;
}

/** The values as nested arrays. */
export function nested(t: Tensor): Nested {
  const { shape, dtype } = t;
  const data = gatherData(t);
  let at = 0;
  const build = (d: number): Nested => {
    if (d === shape.length) return readValue(data, at++, dtype);
    return Array.from({ length: shape[d]! }, () => build(d + 1));
  };
  return build(0);
}

// ---- from JavaScript values

const viewTypes = new Map<string, DType>([
  ["Uint8Array", dt.uint8],
  ["Uint8ClampedArray", dt.uint8],
  ["Int8Array", dt.int8],
  ["Int16Array", dt.int16],
  ["Int32Array", dt.int32],
  ["BigInt64Array", dt.int64],
  ["Float32Array", dt.float32],
  ["Float64Array", dt.float64],
  ["Buffer", dt.uint8],
]);

function viewDType(view: ArrayBufferView): DType {
  const dtype = viewTypes.get(view.constructor.name);
  if (!dtype) {
    throw new DTypeError(`tensor: ${view.constructor.name} has no dtype that holds its values`);
  }
  return dtype;
}

function viewBytes(view: ArrayBufferView): Uint8Array {
  try {
    return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  } catch {
    // The one cause: not every host tells that a buffer is detached.
    throw new ValueError("tensor: the typed array's buffer is detached");
  }
}

interface Flat {
  shape: number[];
  values: unknown[];
}

type Row = ArrayLike<unknown> | Tensor;

function isRow(x: unknown): x is Row {
  return Array.isArray(x) || ArrayBuffer.isView(x) || (x instanceof Tensor && x.ndim > 0);
}

// The shape of nested data, checked to be rectangular, and its leaves in order.
function flatten(data: unknown): Flat {
  const shape: number[] = [];
  const values: unknown[] = [];
  const visit = (x: unknown, depth: number): void => {
    const row = x instanceof Tensor ? (nested(x) as unknown) : x;
    if (!isRow(row)) {
      if (depth < shape.length) throw ragged(depth, shape[depth]!, "a number");
      if (row === undefined) throw new ValueError("tensor: the data has a hole (undefined)");
      values.push(row);
      return;
    }
    const n = (row as ArrayLike<unknown>).length;
    if (shape.length === depth) {
      if (values.length > 0) throw ragged(depth, 0, `length ${n}`);
      shape.push(n);
    } else if (shape[depth] !== n) {
      throw ragged(depth, shape[depth]!, `length ${n}`);
    }
    for (let i = 0; i < n; i++) visit((row as ArrayLike<unknown>)[i], depth + 1);
  };
  visit(data, 0);
  return { shape, values };
}

function ragged(depth: number, want: number, got: string): ShapeError {
  return new ShapeError(
    `tensor: expected length ${want} at dim ${depth}, got ${got} (ragged data)`,
  );
}

function inferDType(values: unknown[]): DType {
  let kind = 0; // bool < int64 < float < complex
  for (const v of values) {
    if (typeof v === "boolean") kind = Math.max(kind, 1);
    else if (typeof v === "bigint") kind = Math.max(kind, 2);
    else if (typeof v === "number" || v instanceof dt.FloatScalar) kind = Math.max(kind, 3);
    else if (v instanceof dt.Complex) kind = Math.max(kind, 4);
    else throw new TypeError_(`tensor: expected numbers, got ${describe(v)}`);
  }
  // Mixed bigint and number data is exact as int64 as long as the numbers are integers.
  const bigints = kind === 3 && values.some((v) => typeof v === "bigint");
  if (bigints && values.every((v) => typeof v === "bigint" || Number.isSafeInteger(v))) {
    return dt.int64;
  }
  const float = dt.dtypes[ops._defaultDtype()]!;
  const complex = float === dt.float64 ? dt.complex128 : dt.complex64;
  return [float, dt.bool, dt.int64, float, complex][kind]!;
}

const wide = 2n ** 63n;

function toBigInt(v: unknown): bigint {
  if (typeof v === "bigint") {
    if (v < -wide || v >= wide) throw new ValueError(`tensor: ${v} does not fit int64`);
    return v;
  }
  if (typeof v === "boolean") return v ? 1n : 0n;
  const n = Number(v);
  if (!Number.isSafeInteger(Math.trunc(n))) {
    throw new ValueError(`tensor: ${n} is not an exact integer; give int64 data as bigint`);
  }
  return BigInt(Math.trunc(n));
}

function encode(values: unknown[], dtype: DType): Uint8Array {
  if (dtype === dt.int64) return new Uint8Array(BigInt64Array.from(values, toBigInt).buffer);
  if (dtype.isComplex) {
    const pairs = values.flatMap((v) =>
      v instanceof dt.Complex ? [v.re, v.im] : [Number(v as number), 0],
    );
    const array = dtype === dt.complex64 ? Float32Array.from(pairs) : Float64Array.from(pairs);
    return new Uint8Array(array.buffer);
  }
  const numbers = values.map((v) => {
    if (v instanceof dt.Complex) {
      throw new DTypeError(`tensor: a complex number does not fit ${dtype}`);
    }
    return Number(v);
  });
  if (dtype === dt.bool) return Uint8Array.from(numbers, (v) => (v !== 0 ? 1 : 0));
  const array = new (arrayTypes.get(dtype)!)(new ArrayBuffer(numbers.length * dtype.itemsize));
  (array as Float64Array).set(numbers);
  return new Uint8Array(array.buffer);
}

/** A dtype given by itself or by its name. */
function wantedDType(x: unknown): DType | null {
  if (x === undefined || x === null) return null;
  if (x instanceof dt.DType) return x;
  if (typeof x === "string") return dt.dtypeOf(x);
  throw new TypeError_(`tensor: expected a dtype, got ${describe(x)}`);
}

/**
 * A tensor of the given data, copied. Plain numbers become the default float dtype, booleans
 * bool, bigints int64, typed arrays their own dtype; `dtype` overrides.
 *
 * torch.tensor([[1, 2], [3, 4]])  // float32, shape [2, 2]
 */
export function tensor(data: TensorData, options: TensorOptions = {}): Tensor {
  checkNames("tensor", options, ["dtype", "device", "requiresGrad"]);
  const wanted = wantedDType(options.dtype);
  if (data instanceof Tensor) {
    const copy = ops.clone(ops.detach(data));
    const moved = options.device === undefined ? copy : ops._toDevice(copy, options.device);
    const cast = wanted ? ops._toDtype(moved, wanted) : moved;
    return options.requiresGrad ? cast.requiresGrad_(true) : cast;
  }
  if (ArrayBuffer.isView(data)) {
    const from = viewDType(data);
    const bytes = viewBytes(data);
    const t = fromBytes(from, [bytes.length / from.itemsize], bytes, { device: options.device });
    const cast = wanted ? ops._toDtype(t, wanted) : t;
    return options.requiresGrad ? cast.requiresGrad_(true) : cast;
  }
  const { shape, values } = flatten(data);
  const dtype = wanted ?? inferDType(values);
  inferDType(values);
  const half = dtype === dt.float16 || dtype === dt.bfloat16;
  const made = fromBytes(
    half ? dt.float32 : dtype,
    shape,
    encode(values, half ? dt.float32 : dtype),
  );
  const cast = half ? ops._toDtype(made, dtype) : made;
  const placed = options.device === undefined ? cast : ops._toDevice(cast, options.device);
  return options.requiresGrad ? placed.requiresGrad_(true) : placed;
}

/** Whether x is memory, of whichever realm. */
function isBuffer(x: unknown): x is ArrayBuffer {
  const kind = Object.prototype.toString.call(x);
  return kind === "[object ArrayBuffer]" || kind === "[object SharedArrayBuffer]";
}

/** A 1-d tensor over a copy of raw bytes. */
export function frombuffer(
  buffer: ArrayBuffer | ArrayBufferView,
  options: { dtype: DType; count?: number; offset?: number; requiresGrad?: boolean },
): Tensor {
  if (!ArrayBuffer.isView(buffer) && !isBuffer(buffer)) {
    throw new TypeError_(`frombuffer: expected an ArrayBuffer or a view, got ${describe(buffer)}`);
  }
  checkNames("frombuffer", options, ["dtype", "count", "offset", "requiresGrad"]);
  const all = ArrayBuffer.isView(buffer) ? viewBytes(buffer) : new Uint8Array(buffer);
  const { dtype, offset = 0 } = options;
  if (!(dtype instanceof dt.DType)) {
    throw new TypeError_(`frombuffer: expected a dtype, got ${describe(dtype)}`);
  }
  const room = Math.floor((all.length - offset) / dtype.itemsize);
  const count = options.count === undefined || options.count < 0 ? room : options.count;
  const exact = options.count !== undefined || (all.length - offset) % dtype.itemsize === 0;
  if (offset < 0 || offset > all.length || count > room || !exact) {
    throw new ValueError(
      `frombuffer: expected whole elements of ${dtype} from byte ${offset} of ${all.length}`,
    );
  }
  const bytes = all.subarray(offset, offset + count * dtype.itemsize);
  return fromBytes(dtype, [count], bytes, options.requiresGrad ? { requiresGrad: true } : {});
}
