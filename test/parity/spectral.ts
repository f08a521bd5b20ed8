// Compares eigen- and singular vectors, whose sign, phase and basis within a subspace are free.
import { dtypeName, type TensorLike } from "./api.js";
import { isClose, tensorDifference, toleranceFor, type Tolerance } from "./compare.js";
import { recordedValues, type TensorCode, type Values } from "./codec.js";
import type { Fixture } from "./fixtures.js";

/** A complex matrix, row by row; vectors are its columns. */
interface Matrix {
  rows: number;
  columns: number;
  re: Float64Array;
  im: Float64Array;
}

type Compare = (op: string, actual: TensorLike[], expected: Values[]) => string | undefined;

const svd: Compare = (op, actual, expected) => compareSvd(op, actual, expected, false);

/** Operators with free vectors, by the name of the recording. */
const comparisons: Record<string, Compare> = {
  "linalg.eig": compareEig,
  "linalg.eigvals": (op, actual, expected) => {
    if (!sameHead(actual[0]!, expected[0]!)) return headOnly(op, actual, expected);
    const order = eigenvalueOrder(op, actual[0]!, expected[0]!);
    return typeof order === "string" ? order : undefined;
  },
  "linalg.eigh": compareEigh,
  "linalg.svd": (op, actual, expected) => compareSvd(op, actual, expected, true),
  svd,
  svd_lowrank: svd,
  pca_lowrank: svd,
};

/** The comparison of an operator with free vectors, or undefined for all others. */
export function spectralDifference(
  op: string,
  fixture: Fixture<unknown>,
): ((actual: TensorLike[], expected: TensorCode[]) => string | undefined) | undefined {
  const compare = comparisons[op];
  if (!compare) return undefined;
  return (actual, codes) => {
    const expected = codes.map((code) => recordedValues(fixture, code));
    if (actual.length !== expected.length)
      return `out: ${actual.length} results, expected ${expected.length}`;
    return compare(op, actual, expected);
  };
}

/**
 * Where each of the recorded eigenvalues stands in the result: PyTorch promises no order, and
 * LAPACK's is the order in which they converge. Gives the first one that is missing as text.
 */
export function eigenvalueOrder(
  op: string,
  actual: TensorLike,
  expected: Values,
): number[] | string {
  const got = matrices(toValues(actual), true);
  const want = matrices(expected, true);
  const tolerance = toleranceFor(op, expected.dtype)!;
  const order: number[] = [];
  for (const [batch, matrix] of want.entries()) {
    const { columns, re, im } = matrix;
    const free = new Set(re.keys());
    for (let j = 0; j < columns; j++) {
      const distance = (i: number) =>
        Math.hypot(got[batch]!.re[i]! - re[j]!, got[batch]!.im[i]! - im[j]!);
      const nearest = [...free].reduce((a, b) => (distance(b) < distance(a) ? b : a));
      if (!isClose(distance(nearest), 0, Math.hypot(re[j]!, im[j]!), tolerance))
        return `out: no eigenvalue ${re[j]} + ${im[j]}i`;
      free.delete(nearest);
      order.push(batch * columns + nearest);
    }
  }
  return order;
}

/** Each unit eigenvector is free in its phase: v v* is not. */
function compareEig(op: string, actual: TensorLike[], expected: Values[]): string | undefined {
  if (!actual.every((tensor, i) => sameHead(tensor, expected[i]!)))
    return headOnly(op, actual, expected);
  const order = eigenvalueOrder(op, actual[0]!, expected[0]!);
  if (typeof order === "string") return order;
  const got = matrices(toValues(actual[1]!));
  const tolerance = toleranceFor(op, expected[1]!.dtype)!;
  for (const [batch, want] of matrices(expected[1]!).entries())
    for (let j = 0; j < want.columns; j++) {
      const place = order[batch * want.columns + j]! % want.columns;
      if (!sameSpan(got[batch]!, [place], want, [j], tolerance))
        return `out[1]: eigenvector ${j} of matrix ${batch} differs`;
    }
  return undefined;
}

function compareEigh(op: string, actual: TensorLike[], expected: Values[]): string | undefined {
  const values = tensorDifference(op, "out[0]", actual[0]!, expected[0]!);
  if (values || !sameHead(actual[1]!, expected[1]!))
    return values ?? headOnly(op, actual, expected);
  const eigenvalues = matrices(expected[0]!, true);
  const got = matrices(toValues(actual[1]!));
  const tolerance = toleranceFor(op, expected[1]!.dtype)!;
  for (const [batch, want] of matrices(expected[1]!).entries())
    for (const group of groups(eigenvalues[batch]!.re, want.columns))
      if (!sameSpan(got[batch]!, group, want, group, tolerance))
        return `out[1]: eigenvectors ${group} of matrix ${batch} differ`;
  return undefined;
}

/** Compares U, S, V (or V*) by the spans of equal singular values and by the product U S V*. */
function compareSvd(
  op: string,
  actual: TensorLike[],
  expected: Values[],
  adjoint: boolean,
): string | undefined {
  const values = tensorDifference(op, "out[1]", actual[1]!, expected[1]!);
  if (values || !actual.every((tensor, i) => sameHead(tensor, expected[i]!)))
    return values ?? headOnly(op, actual, expected);
  const sigma = matrices(expected[1]!, true);
  const load = (value: Values) => matrices(value);
  const conjugated = (list: Matrix[]) => (adjoint ? list.map(conjugateTranspose) : list);
  const got = [load(toValues(actual[0]!)), conjugated(load(toValues(actual[2]!)))] as const;
  const want = [load(expected[0]!), conjugated(load(expected[2]!))] as const;
  const tolerance = toleranceFor(op, expected[0]!.dtype)!;
  for (const [batch, { re: s }] of sigma.entries()) {
    for (const side of [0, 1] as const) {
      const [a, b] = [got[side][batch]!, want[side][batch]!];
      for (const group of groups(s, b.columns)) {
        const free = group.every((j) => !(s[j]! > 1e-7)) && b.columns < b.rows;
        if (free ? !orthonormal(a, group, tolerance) : !sameSpan(a, group, b, group, tolerance))
          return `out[${side * 2}]: singular vectors ${group} of matrix ${batch} differ`;
      }
    }
    const [u, v] = [got[0][batch]!, got[1][batch]!];
    const [wantU, wantV] = [want[0][batch]!, want[1][batch]!];
    for (let i = 0; i < u.rows; i++)
      for (let j = 0; j < v.rows; j++)
        if (!closeEntry(product(u, i, v, j, s), product(wantU, i, wantV, j, s), tolerance))
          return `out: U S V* of matrix ${batch} differs at [${i}, ${j}]`;
  }
  return undefined;
}

/** Columns with equal values; those beyond the values (of a full basis) belong to value 0. */
function groups(values: Float64Array, columns: number): number[][] {
  const largest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const result: number[][] = [];
  for (let j = 0; j < columns; j++) {
    const near = j > 0 && Math.abs((values[j] ?? 0) - (values[j - 1] ?? 0)) <= 1e-6 * largest;
    if (near || (j > 0 && largest === 0)) result.at(-1)!.push(j);
    else result.push([j]);
  }
  return result;
}

/** Whether unit columns span the same space: their projections onto it agree. */
function sameSpan(
  a: Matrix,
  ofA: number[],
  b: Matrix,
  ofB: number[],
  tolerance: Tolerance,
): boolean {
  const ones = new Float64Array(Math.max(a.columns, b.columns)).fill(1);
  for (let i = 0; i < a.rows; i++)
    for (let j = 0; j < a.rows; j++)
      if (!closeEntry(product(a, i, a, j, ones, ofA), product(b, i, b, j, ones, ofB), tolerance))
        return false;
  return true;
}

function orthonormal(a: Matrix, columns: number[], tolerance: Tolerance): boolean {
  const turned = conjugateTranspose(a);
  const ones = new Float64Array(a.rows).fill(1);
  return columns.every((i) =>
    columns.every((j) =>
      closeEntry(product(turned, i, turned, j, ones), [i === j ? 1 : 0, 0], tolerance),
    ),
  );
}

/** Entry [i, j] of A diag(scale) B*, over the given columns. */
function product(
  a: Matrix,
  i: number,
  b: Matrix,
  j: number,
  scale: Float64Array,
  columns: Iterable<number> = scale.keys(),
): [number, number] {
  let [re, im] = [0, 0];
  for (const k of columns) {
    const [p, q] = [i * a.columns + k, j * b.columns + k];
    re += scale[k]! * (a.re[p]! * b.re[q]! + a.im[p]! * b.im[q]!);
    im += scale[k]! * (a.im[p]! * b.re[q]! - a.re[p]! * b.im[q]!);
  }
  return [re, im];
}

function closeEntry(x: [number, number], y: [number, number], tolerance: Tolerance): boolean {
  return isClose(Math.hypot(x[0] - y[0], x[1] - y[1]), 0, Math.hypot(...y), tolerance);
}

function conjugateTranspose({ rows, columns, re, im }: Matrix): Matrix {
  const turn = (data: Float64Array, sign: number) =>
    Float64Array.from(data, (_, at) => sign * data[(at % rows) * columns + Math.floor(at / rows)]!);
  return { rows: columns, columns: rows, re: turn(re, 1), im: turn(im, -1) };
}

/** The matrices of a batch; with `asRow` the last dimension alone, as matrices of one row. */
function matrices({ dtype, shape, data }: Values, asRow = false): Matrix[] {
  const columns = shape.at(-1) ?? 1;
  const rows = asRow ? 1 : shape.at(-2)!;
  const step = dtype.startsWith("complex") ? 2 : 1;
  const size = rows * columns;
  const batches = shape.slice(0, asRow ? -1 : -2).reduce((product, n) => product * n, 1);
  return Array.from({ length: batches }, (_, batch) => {
    const part = (offset: number) =>
      Float64Array.from({ length: size }, (_, i) =>
        offset < step ? Number(data[(batch * size + i) * step + offset]) : 0,
      );
    return { rows, columns, re: part(0), im: part(1) };
  });
}

function toValues(tensor: TensorLike): Values {
  return { dtype: dtypeName(tensor.dtype), shape: tensor.shape, data: tensor.data() };
}

function sameHead(actual: TensorLike, expected: Values): boolean {
  return (
    dtypeName(actual.dtype) === expected.dtype && String(actual.shape) === String(expected.shape)
  );
}

/** The ordinary comparison, which names the type or shape that differs. */
function headOnly(op: string, actual: TensorLike[], expected: Values[]): string | undefined {
  for (const [i, tensor] of actual.entries()) {
    const found = tensorDifference(op, `out[${i}]`, tensor, expected[i]!);
    if (found) return found;
  }
  return undefined;
}
