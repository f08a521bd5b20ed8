// Products and factors whose arguments in PyTorch take several forms: einsum, tensordot, lu, ...
import { install } from "./arguments.js";
import { TypeError_, ValueError } from "./errors.js";
import { checkTensor, isOptions } from "./frame.js";
import * as ops from "./ops.gen.js";
import type { Tensor } from "./tensor.js";

function tensors(args: readonly unknown[]): readonly Tensor[] {
  return (Array.isArray(args[0]) ? args[0] : args) as readonly Tensor[];
}

/** Sums of products by labelled dims: einsum("bij,bjk->bik", a, b). */
export function einsum(equation: string, operands: readonly Tensor[]): Tensor;
export function einsum(equation: string, ...operands: Tensor[]): Tensor;
export function einsum(equation: string, ...operands: unknown[]): Tensor {
  if (typeof equation !== "string") {
    throw new TypeError_("einsum: expected the equation, a string, as the first argument");
  }
  return ops._einsum(equation, tensors(operands));
}

/** Product of a chain of matrices, in the cheapest order. */
export function chainMatmul(...matrices: Tensor[]): Tensor {
  return ops._chainMatmul(tensors(matrices));
}

/** The last n dims of one and the first n of the other, or the dims of each. */
export type ContractedDims =
  number | readonly [self: number | readonly number[], other: number | readonly number[]];

/** Products summed over pairs of dims. */
export function tensordot(
  self: Tensor,
  other: Tensor,
  dims: ContractedDims | { dims?: ContractedDims } = 2,
): Tensor {
  checkTensor(self, "tensordot", "self");
  checkTensor(other, "tensordot", "other");
  const given = isOptions(dims) ? ((dims as { dims?: ContractedDims }).dims ?? 2) : dims;
  if (typeof given === "number") {
    if (!(given >= 0 && given <= Math.min(self.dim(), other.dim()))) {
      const most = Math.min(self.dim(), other.dim());
      throw new ValueError(`tensordot: expected dims in [0, ${most}], got ${given}`);
    }
    const count = Array.from({ length: given }, (_, i) => i);
    const first = self.dim() - given;
    return ops._tensordot(
      self,
      other,
      count.map((i) => first + i),
      count,
    );
  }
  if (!Array.isArray(given) || given.length !== 2) {
    throw new TypeError_("tensordot: expected a number or two lists of dims");
  }
  const [a, b] = (given as (number | number[])[]).map((d) => (typeof d === "number" ? [d] : d));
  return ops._tensordot(self, other, a!, b!);
}

/** LU factors and pivots, and with getInfos which matrices are singular. */
export function lu(
  A: Tensor,
  pivot: boolean | { pivot?: boolean; getInfos?: boolean } = true,
  getInfos: boolean | { getInfos?: boolean } = false,
): Tensor[] {
  const named = [pivot, getInfos].find(isOptions) as { pivot?: boolean; getInfos?: boolean };
  const infos = typeof getInfos === "boolean" && getInfos ? true : (named?.getInfos ?? false);
  const exchange = typeof pivot === "boolean" ? pivot : (named?.pivot ?? true);
  const [factors, pivots, info] = ops.linalgLuFactorEx(A, { pivot: exchange }) as Iterable<Tensor>;
  return infos ? [factors!, pivots!, info!] : [factors!, pivots!];
}

declare module "./tensor.js" {
  interface Tensor {
    /** LU factors and pivots, and with getInfos which matrices are singular. */
    lu(pivot?: boolean, getInfos?: boolean): Tensor[];
  }
}

/** Puts the methods of this file on Tensor's prototype. */
export function installProducts(prototype: object): void {
  install(prototype, {
    lu(this: Tensor, pivot?: boolean, getInfos?: boolean): Tensor[] {
      return lu(this, pivot, getInfos);
    },
  });
}
