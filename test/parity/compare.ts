// Compares a result with PyTorch's recorded one: types, shapes, then every element.
import { dtypeName, isTensor, type TensorLike, type TypedArray } from "./api.js";
import { isTensorCode, pythonNumber, recordedValues, type Code, type Values } from "./codec.js";
import type { Fixture } from "./fixtures.js";

/** How far an element may lie from the expected one: `absolute + relative * |expected|`. */
export interface Tolerance {
  relative: number;
  absolute: number;
}

/** Both orders of rounding errors are PyTorch's own defaults for its tests. */
const tolerances: Record<string, Tolerance> = {
  float64: { relative: 1e-7, absolute: 1e-7 },
  complex128: { relative: 1e-7, absolute: 1e-7 },
  float32: { relative: 1.3e-6, absolute: 1e-5 },
  complex64: { relative: 1.3e-6, absolute: 1e-5 },
  float16: { relative: 1e-3, absolute: 1e-5 },
  bfloat16: { relative: 1.6e-2, absolute: 1e-5 },
};

/** Operators whose algorithm cannot keep the tolerance, each with the reason. */
const overrides: Record<string, Tolerance & { reason: string }> = {
  "special.bessel_j0": {
    relative: 1e-7,
    absolute: 1e-6,
    reason:
      "PyTorch's own error: J0(-5.4215280659972755) is -0.03378131278826058 by the integral of " +
      "cos(x sin t), PyTorch gives -0.03378150176924146",
  },
  "special.bessel_y1": {
    relative: 1e-7,
    absolute: 1e-6,
    reason: "PyTorch's own error of up to 4e-7 for arguments above 5, as with bessel_j0",
  },
};

/** The tolerance for results of `op` in `dtype`; undefined means exact. */
export function toleranceFor(op: string, dtype: string): Tolerance | undefined {
  const usual = tolerances[dtype];
  const wider = overrides[op];
  if (!usual || !wider) return usual;
  return {
    relative: Math.max(usual.relative, wider.relative),
    absolute: Math.max(usual.absolute, wider.absolute),
  };
}

/** Operators that return memory as they find it: only type, shape and strides can agree. */
const uninitialised = new Set([
  "empty",
  "empty_like",
  "empty_permuted",
  "empty_strided",
  "new_empty",
  "new_empty_strided",
]);

/** The first difference between a result and the recorded one, or undefined when they agree. */
export function difference(
  op: string,
  path: string,
  actual: unknown,
  expected: Code | undefined,
  fixture: Fixture<unknown>,
): string | undefined {
  if (isTensorCode(expected)) {
    if (!isTensor(actual)) return `${path}: ${describe(actual)}, expected a tensor`;
    const values = recordedValues(fixture, expected);
    if (!uninitialised.has(op)) return tensorDifference(op, path, actual, values);
    return headDifference(path, actual, values) ?? strideDifference(path, actual, expected.stride);
  }
  if (Array.isArray(expected)) {
    const items = listOf(actual);
    if (!items) return `${path}: ${describe(actual)}, expected a list of ${expected.length}`;
    if (items.length !== expected.length)
      return `${path}: ${items.length} results, expected ${expected.length}`;
    for (const [i, item] of expected.entries()) {
      const found = difference(op, `${path}[${i}]`, items[i], item, fixture);
      if (found) return found;
    }
    return undefined;
  }
  return plainDifference(path, actual, expected);
}

/** Compares a tensor with recorded values: type, shape, elements. */
export function tensorDifference(
  op: string,
  path: string,
  actual: TensorLike,
  expected: Values,
): string | undefined {
  const head = headDifference(path, actual, expected);
  if (head) return head;
  const data = actual.data();
  const step = expected.dtype.startsWith("complex") ? 2 : 1;
  if (data.length !== expected.data.length)
    return `${path}: ${data.length} numbers, expected ${expected.data.length}`;
  const tolerance = toleranceFor(op, expected.dtype);
  for (let i = 0; i < data.length; i += step) {
    const same = step === 2 ? complexClose : realClose;
    if (same(data, expected.data, i, tolerance)) continue;
    const where = indexOf(i / step, expected.shape);
    const [got, want] = [element(data, i, step), element(expected.data, i, step)];
    return `${path}${where}: ${got}, expected ${want}`;
  }
  return undefined;
}

function headDifference(path: string, actual: TensorLike, expected: Values): string | undefined {
  const dtype = dtypeName(actual.dtype);
  if (dtype !== expected.dtype) return `${path}: dtype ${dtype}, expected ${expected.dtype}`;
  const [shape, want] = [[...actual.shape], [...expected.shape]];
  if (shape.length !== want.length || shape.some((size, axis) => size !== want[axis]))
    return `${path}: shape [${shape}], expected [${want}]`;
  return undefined;
}

/** Strides are recorded where the result is not contiguous and has elements. */
function strideDifference(
  path: string,
  actual: TensorLike,
  expected?: readonly number[],
): string | undefined {
  if (!expected || String(actual.stride()) === String(expected)) return undefined;
  return `${path}: stride [${actual.stride()}], expected [${expected}]`;
}

function realClose(a: TypedArray, b: TypedArray, i: number, tolerance?: Tolerance): boolean {
  const [x, y] = [a[i]!, b[i]!];
  if (x === y) return true;
  if (typeof x === "bigint" || typeof y === "bigint") return false;
  return isClose(x, y, Math.abs(y), tolerance);
}

/** Complex numbers are close by the modulus of their difference; NaN in one part is NaN. */
function complexClose(a: TypedArray, b: TypedArray, i: number, tolerance?: Tolerance): boolean {
  const [re, im] = [Number(a[i]), Number(a[i + 1])];
  const [wantRe, wantIm] = [Number(b[i]), Number(b[i + 1])];
  if (re === wantRe && im === wantIm) return true;
  if (Number.isNaN(wantRe + wantIm)) return Number.isNaN(re + im) || sameParts();
  if (!Number.isFinite(wantRe) || !Number.isFinite(wantIm)) return sameParts();
  return isClose(Math.hypot(re - wantRe, im - wantIm), 0, Math.hypot(wantRe, wantIm), tolerance);

  function sameParts(): boolean {
    const size = (value: number) => (Number.isFinite(value) ? Math.abs(value) : 0);
    return (
      isClose(re, wantRe, size(wantRe), tolerance) && isClose(im, wantIm, size(wantIm), tolerance)
    );
  }
}

/** Whether `x` is within `tolerance` of `y` at the given magnitude; NaN equals NaN. */
export function isClose(x: number, y: number, magnitude: number, tolerance?: Tolerance): boolean {
  if (x === y || (Number.isNaN(x) && Number.isNaN(y))) return true;
  if (!tolerance || !Number.isFinite(x) || !Number.isFinite(y)) return false;
  return Math.abs(x - y) <= tolerance.absolute + tolerance.relative * magnitude;
}

function plainDifference(path: string, actual: unknown, expected: Code | undefined) {
  const want = plainValue(expected);
  if (Array.isArray(want)) {
    const { re, im } = (actual ?? {}) as { re?: unknown; im?: unknown };
    if (typeof re === "number" && typeof im === "number")
      if (complexClose(Float64Array.of(re, im), Float64Array.from(want), 0, tolerances.complex128))
        return undefined;
    return `${path}: ${describe(actual)}, expected ${want[0]} + ${want[1]}i`;
  }
  if (typeof want === "number" && typeof actual === "number") {
    if (isClose(actual, want, Math.abs(want), tolerances["float64"])) return undefined;
  } else if (actual === want) return undefined;
  return `${path}: ${describe(actual)}, expected ${String(want)}`;
}

/** A number, string, boolean, null or, for a complex number, its two parts. */
function plainValue(code: Code | undefined): unknown {
  if (typeof code !== "object" || code === null || Array.isArray(code)) return code;
  if ("complex" in code) return (code["complex"] as string[]).map(pythonNumber);
  if ("dtype" in code) return code["dtype"];
  return pythonNumber(code["float"] ?? code["int"]);
}

/** The items of an array or of anything iterable that is not a tensor. */
export function listOf(value: unknown): unknown[] | undefined {
  if (Array.isArray(value)) return value;
  const iterable = typeof value === "object" && value !== null && Symbol.iterator in value;
  return iterable && !isTensor(value) ? [...(value as Iterable<unknown>)] : undefined;
}

/** All tensors in a result, in order. */
export function tensorsIn(value: unknown): TensorLike[] {
  if (isTensor(value)) return [value];
  return listOf(value)?.flatMap(tensorsIn) ?? [];
}

function describe(value: unknown): string {
  if (isTensor(value)) return `a tensor of shape [${value.shape}]`;
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return typeof value === "object" && value !== null ? value.constructor.name : String(value);
}

function element(data: TypedArray, i: number, step: number): string {
  return step === 2 ? `${data[i]} + ${data[i + 1]}i` : String(data[i]);
}

/** The subscript of a row-major position, empty for a scalar. */
function indexOf(position: number, shape: readonly number[]): string {
  const index: number[] = [];
  for (const size of [...shape].reverse()) {
    index.unshift(position % size);
    position = Math.floor(position / size);
  }
  return index.length > 0 ? `[${index}]` : "";
}

const integerLimit = { complex: 3, float: 2, bfloat: 2, int: 1, uint: 1, bool: 0 };

/** Whether PyTorch lets a result of type `from` be stored in a tensor of type `to`. */
export function canCast(from: string, to: string): boolean {
  const rank = (dtype: string) =>
    integerLimit[dtype.replace(/\d+$/, "") as keyof typeof integerLimit];
  return rank(from) <= rank(to);
}

/** Recorded values as a tensor of another type would hold them. */
export function castValues(values: Values, dtype: string): Values {
  if (values.dtype === dtype) return values;
  const numbers = Array.from(values.data as Iterable<number | bigint>, Number);
  const { shape } = values;
  if (dtype.startsWith("complex")) {
    const parts = values.dtype.startsWith("complex") ? numbers : numbers.flatMap((x) => [x, 0]);
    return { dtype, shape, data: Float64Array.from(parts) };
  }
  if (dtype !== "int64") return { dtype, shape, data: Float64Array.from(numbers) };
  return { dtype, shape, data: BigInt64Array.from(numbers, BigInt) };
}
