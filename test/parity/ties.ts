// Accepts other indices than the recorded ones where equal elements leave the choice free.
import { isTensor, method, type TensorLike } from "./api.js";
import type { Code } from "./codec.js";
import { tensorsIn } from "./compare.js";

/** The place of `dim` among the arguments of the operators that give indices of their choice. */
const dimArgument: Record<string, number> = { sort: 1, argsort: 1, topk: 2, kthvalue: 2, mode: 1 };

/** A call of such an operator: its arguments as values, its results and the recorded ones. */
export interface TiedCall {
  op: string;
  args: unknown[];
  kwargs: Record<string, unknown>;
  actual: unknown;
  expected: TensorLike[];
}

/** Whether the operator may choose among equals: PyTorch's CPU and GPU choose differently. */
export function choosesAmongEquals(op: string, kwargs: Record<string, Code>): boolean {
  return op in dimArgument && kwargs["stable"] !== true;
}

/**
 * Whether values and shapes agree and the indices differ only among equal elements. Sorted indices
 * must still be a permutation.
 */
export function differsOnlyInTies({ op, args, kwargs, actual, expected }: TiedCall): boolean {
  const results = tensorsIn(actual);
  const x = args[0];
  if (!isTensor(x) || results.length !== expected.length) return false;
  if (results.some((t, i) => String(t.shape) !== String(expected[i]!.shape))) return false;
  const dim = Number(kwargs["dim"] ?? args[dimArgument[op]!] ?? -1);
  const [got, want] = [results.at(-1)!, expected.at(-1)!];
  if (results.length > 1 && !sameData(results[0]!, expected[0]!)) return false;
  if (!sameData(picked(x, dim, got), picked(x, dim, want))) return false;
  if (op !== "sort" && op !== "argsort") return true;
  const ordered = (t: TensorLike) => tensorsIn(method(t, "sort", dim))[0]!;
  return sameData(ordered(got), ordered(want));
}

/** The elements of x that the indices name. */
function picked(x: TensorLike, dim: number, indices: TensorLike): TensorLike {
  const lacks = indices.shape.length < x.shape.length;
  const at = lacks ? method(indices, "unsqueeze", dim) : indices;
  return method(x, "gather", dim, at) as TensorLike;
}

function sameData(a: TensorLike, b: TensorLike): boolean {
  const [x, y] = [a.data(), b.data()];
  return x.length === y.length && x.every((value, i) => Object.is(value, y[i]) || value == y[i]);
}
