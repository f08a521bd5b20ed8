// Reductions whose PyTorch overloads differ by argument type: max, min, std, var, norm.
import type { DType, Scalar } from "./dtype.js";
import { TypeError_, ValueError } from "./errors.js";
import { install, named } from "./arguments.js";
import { id, type Named } from "./frame.js";
import * as ops from "./ops.gen.js";
import { Tensor } from "./tensor.js";

type Extremes = Named<"values" | "indices">;
type Dim = number | readonly number[] | null;

interface ExtremeOptions {
  dim?: number;
  keepdim?: boolean;
  other?: Tensor;
}

function extreme(op: "max" | "min", self: Tensor, args: readonly unknown[]): Tensor | Extremes {
  const first = args[0] instanceof Tensor ? "other" : "dim";
  const given = named(op, [first, "keepdim", first === "dim" ? "other" : "dim"], args);
  const { dim, keepdim = false, other } = given;
  if (other !== undefined) {
    id(self, op, "self");
    const binary = op === "max" ? ops.maximum : ops.minimum;
    return binary(self, other as Tensor);
  }
  if (dim === undefined || dim === null) {
    if (keepdim) throw new ValueError(`${op}: keepdim needs a dim`);
    return op === "max" ? ops._maxAll(self) : ops._minAll(self);
  }
  const along = op === "max" ? ops._maxDim : ops._minDim;
  return along(self, dim as number, keepdim as boolean);
}

/** The largest element; with a dim, the largest along it and where; or of two tensors. */
export function max(self: Tensor): Tensor;
export function max(self: Tensor, other: Tensor): Tensor;
export function max(self: Tensor, dim: number, keepdim?: boolean): Extremes;
export function max(self: Tensor, options: ExtremeOptions & { dim: number }): Extremes;
export function max(self: Tensor, ...args: unknown[]): Tensor | Extremes {
  return extreme("max", self, args);
}

/** The smallest element; with a dim, the smallest along it and where; or of two tensors. */
export function min(self: Tensor): Tensor;
export function min(self: Tensor, other: Tensor): Tensor;
export function min(self: Tensor, dim: number, keepdim?: boolean): Extremes;
export function min(self: Tensor, options: ExtremeOptions & { dim: number }): Extremes;
export function min(self: Tensor, ...args: unknown[]): Tensor | Extremes {
  return extreme("min", self, args);
}

export interface MomentOptions {
  dim?: Dim;
  /** What the count is reduced by; 1 unless given. */
  correction?: number | null;
  /** `correction` 1 or 0. */
  unbiased?: boolean;
  keepdim?: boolean;
}

/** dim, correction and keepdim of std, var, stdMean and varMean. */
function moment(op: string, args: readonly unknown[]): [Dim, Scalar | null, boolean] {
  // std(x, unbiased) against std(x, dim, unbiased, keepdim).
  const flagFirst = typeof args[0] === "boolean";
  const names = flagFirst ? ["unbiased"] : ["dim", "unbiased", "keepdim", "correction"];
  const { dim = null, unbiased, keepdim = false, correction } = named(op, names, args);
  if (unbiased !== undefined && correction !== undefined)
    throw new ValueError(`${op}: expected either unbiased or correction, got both`);
  const flag = unbiased === undefined || unbiased === null ? null : unbiased ? 1 : 0;
  return [dim as Dim, flag ?? ((correction ?? null) as Scalar | null), keepdim as boolean];
}

type MomentArgs = [unbiased?: boolean] | [options: MomentOptions] | MomentPositional;
type MomentPositional = [
  dim: Dim,
  unbiased?: boolean | MomentOptions,
  keepdim?: boolean | MomentOptions,
];

/** Standard deviation over dims, or of everything. */
export function std(self: Tensor, ...args: MomentArgs): Tensor {
  return ops._std(self, ...moment("std", args));
}
/** Variance over dims, or of everything. */
function variance(self: Tensor, ...args: MomentArgs): Tensor {
  return ops._var(self, ...moment("var", args));
}
export { variance as var };
/** Standard deviation and mean over dims, or of everything. */
export function stdMean(self: Tensor, ...args: MomentArgs): Named<"deviation" | "mean"> {
  return ops._stdMean(self, ...moment("std_mean", args));
}
/** Variance and mean over dims, or of everything. */
export function varMean(self: Tensor, ...args: MomentArgs): Named<"variance" | "mean"> {
  return ops._varMean(self, ...moment("var_mean", args));
}

/** A number, "fro" for Frobenius, "nuc" for nuclear. */
export type NormOrder = number | "fro" | "nuc";

export interface NormOptions {
  p?: NormOrder | null;
  dim?: Dim;
  keepdim?: boolean;
  dtype?: DType | null;
}
export interface LinalgNormOptions extends Omit<NormOptions, "p"> {
  ord?: NormOrder | null;
}

function order(op: string, ord: unknown): ["number" | "fro" | "nuc" | "none", number] {
  if (ord === null || ord === undefined) return ["none", 2];
  if (typeof ord === "number") return ["number", ord];
  if (ord === "fro" || ord === "nuc") return [ord, 2];
  throw new TypeError_(`${op}: expected a number, "fro" or "nuc" for the order, got ${ord}`);
}

/** Norm over dims, or of everything; p = 2 unless given. */
export function norm(
  self: Tensor,
  p?: NormOrder | null | NormOptions,
  dim?: Dim | NormOptions,
  keepdim?: boolean | NormOptions,
  options?: NormOptions,
): Tensor;
export function norm(self: Tensor, ...args: unknown[]): Tensor {
  const given = named("norm", ["p", "dim", "keepdim", "dtype"], args);
  const { p = "fro", dim = null, keepdim = false, dtype = null } = given;
  const rest = [dim as Dim, keepdim as boolean, dtype as DType | null] as const;
  return ops._norm(self, ...order("norm", p), ...rest);
}

/** torch.linalg.norm: of a vector, or of a matrix for two dims. */
export function linalgNorm(
  self: Tensor,
  ord?: NormOrder | null | LinalgNormOptions,
  dim?: Dim | LinalgNormOptions,
  keepdim?: boolean | LinalgNormOptions,
  options?: LinalgNormOptions,
): Tensor;
export function linalgNorm(self: Tensor, ...args: unknown[]): Tensor {
  const given = named("linalg.norm", ["ord", "dim", "keepdim", "dtype"], args);
  const { ord = null, dim = null, keepdim = false, dtype = null } = given;
  const rest = [dim as Dim, keepdim as boolean, dtype as DType | null] as const;
  return ops._linalgNorm(self, ...order("linalg.norm", ord), ...rest);
}

/** torch.linalg.matrix_norm: over two dims, the last ones unless given. */
export function linalgMatrixNorm(
  self: Tensor,
  ord?: NormOrder | LinalgNormOptions,
  dim?: readonly number[] | LinalgNormOptions,
  keepdim?: boolean | LinalgNormOptions,
  options?: LinalgNormOptions,
): Tensor;
export function linalgMatrixNorm(self: Tensor, ...args: unknown[]): Tensor {
  const given = named("linalg.matrix_norm", ["ord", "dim", "keepdim", "dtype"], args);
  const { ord = "fro", dim = [-2, -1], keepdim = false, dtype = null } = given;
  const rest = [dim as readonly number[], keepdim as boolean, dtype as DType | null] as const;
  return ops._matrixNorm(self, ...order("linalg.matrix_norm", ord), ...rest);
}

/** torch.linalg.cond: the condition number of matrices, by singular values unless given. */
export function linalgCond(self: Tensor, p?: NormOrder | null | { p?: NormOrder | null }): Tensor {
  const { p: ord = null } = named("linalg.cond", ["p"], p === undefined ? [] : [p]);
  return ops._linalgCond(self, ...order("linalg.cond", ord));
}

/** The methods of Tensor that this file gives. */
export interface ReduceMethods {
  /** The largest element; with a dim, the largest along it and where; or of two tensors. */
  max(): Tensor;
  max(other: Tensor): Tensor;
  max(dim: number, keepdim?: boolean): Extremes;
  max(options: ExtremeOptions & { dim: number }): Extremes;
  /** The smallest element; with a dim, the smallest along it and where; or of two tensors. */
  min(): Tensor;
  min(other: Tensor): Tensor;
  min(dim: number, keepdim?: boolean): Extremes;
  min(options: ExtremeOptions & { dim: number }): Extremes;
  /** Standard deviation over dims, or of everything. */
  std(...args: MomentArgs): Tensor;
  /** Variance over dims, or of everything. */
  var(...args: MomentArgs): Tensor;
  /** Norm over dims, or of everything; p = 2 unless given. */
  norm(
    p?: NormOrder | null | NormOptions,
    dim?: Dim | NormOptions,
    keepdim?: boolean | NormOptions,
    options?: NormOptions,
  ): Tensor;
}

declare module "./tensor.js" {
  interface Tensor extends ReduceMethods {}
}

/** Puts the methods on Tensor's prototype. */
export function installReductions(prototype: object): void {
  const functions = { max, min, std, var: variance, norm } as Record<string, Function>;
  const methods = Object.entries(functions).map(([name, fn]) => [
    name,
    function (this: Tensor, ...args: unknown[]): unknown {
      return fn(this, ...args);
    },
  ]);
  install(prototype, Object.fromEntries(methods));
}
