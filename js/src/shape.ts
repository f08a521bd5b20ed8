// Shape operators whose arguments come in several forms: lists or single tensors, numbers or lists.
import { named } from "./arguments.js";
import { DType, type Scalar } from "./dtype.js";
import { describe } from "./dtype.js";
import { ShapeError, TypeError_, ValueError } from "./errors.js";
import { checkNames, checkTensor, isOptions } from "./frame.js";
import * as ops from "./ops.gen.js";
import { Tensor } from "./tensor.js";

type Ints = number | readonly number[];

// Tensors given one by one or as one list.
function listed(op: string, args: readonly unknown[]): Tensor[] {
  const list = args.length === 1 && Array.isArray(args[0]) ? (args[0] as unknown[]) : args;
  for (const t of list)
    if (!(t instanceof Tensor)) throw new TypeError_(`${op}: expected Tensors, got ${describe(t)}`);
  return [...(list as Tensor[])];
}

// A last argument that names others, apart from the rest.
function withOptions(op: string, args: readonly unknown[], names: readonly string[]) {
  const last = args.at(-1);
  if (!isOptions(last)) return { rest: [...args], options: {} as Record<string, unknown> };
  checkNames(op, last, names);
  return { rest: args.slice(0, -1), options: last };
}

// The values of `names`, by position or by name.
function bind(op: string, args: readonly unknown[], names: readonly string[]): unknown[] {
  const given = named(op, names, args);
  return names.map((name) => given[name]);
}

// ---- splitting

interface SplitOptions {
  splitSizeOrSections?: Ints;
  dim?: number;
}

/** Parts of one size (the last one may be smaller), or of given sizes, along a dim. */
export function split(
  self: Tensor,
  sizes: Ints | SplitOptions,
  dim?: number | SplitOptions,
): Tensor[];
export function split(self: Tensor, ...args: unknown[]): Tensor[] {
  const [sizes, dim] = bind("split", args, ["splitSizeOrSections", "dim"]);
  if (typeof sizes === "number") return ops._split(self, sizes, (dim as number) ?? 0);
  return ops.splitWithSizes(self, sizes as readonly number[], (dim as number) ?? 0);
}

interface TensorSplitOptions {
  indicesOrSections?: Ints | Tensor;
  indices?: readonly number[];
  sections?: number;
  dim?: number;
}

function splitAt(op: string, self: Tensor, where: unknown, dim: number): Tensor[] {
  if (typeof where === "number") return ops._tensorSplitSections(self, where, dim);
  if (Array.isArray(where)) return ops._tensorSplitIndices(self, where, dim);
  throw new TypeError_(`${op}: expected a number or a list of integers, got ${describe(where)}`);
}

/** A number of nearly equal parts, or the parts between indices, along a dim. */
export function tensorSplit(
  self: Tensor,
  where: Ints | Tensor | TensorSplitOptions,
  dim?: number | TensorSplitOptions,
): Tensor[];
export function tensorSplit(self: Tensor, ...args: unknown[]): Tensor[] {
  const names = ["indicesOrSections", "dim", "indices", "sections"];
  const [given, dim, indices, sections] = bind("tensorSplit", args, names);
  let where = given ?? indices ?? sections;
  if (where instanceof Tensor) {
    if (where.ndim > 1) {
      throw new ShapeError(`tensorSplit: expected 0-d or 1-d indices, got shape [${where.shape}]`);
    }
    where = where.tolist();
  }
  return splitAt("tensorSplit", self, where, (dim as number) ?? 0);
}

// hsplit, vsplit and dsplit take parts of equal size only.
function evenSplit(op: string, self: Tensor, where: unknown, dim: number, rank: number): Tensor[] {
  checkTensor(self, op, "self");
  const { shape } = self;
  if (shape.length < rank) {
    throw new ShapeError(`${op}: expected a tensor of at least ${rank} dims, got shape [${shape}]`);
  }
  if (typeof where === "number" && !(where > 0 && shape[dim]! % where === 0)) {
    throw new ValueError(`${op}: size ${shape[dim]} of dim ${dim} is not divisible by ${where}`);
  }
  return splitAt(op, self, where, dim);
}

type Where = Ints | { indices?: readonly number[]; sections?: number };
const whereOf = (where: Where): unknown =>
  isOptions(where) ? (where["indices"] ?? where["sections"]) : where;

/** Parts side by side: along dim 1, or dim 0 of a 1-d tensor. */
export function hsplit(self: Tensor, where: Where): Tensor[] {
  checkTensor(self, "hsplit", "self");
  return evenSplit("hsplit", self, whereOf(where), self.ndim > 1 ? 1 : 0, 1);
}
/** Parts along dim 0. */
export function vsplit(self: Tensor, where: Where): Tensor[] {
  return evenSplit("vsplit", self, whereOf(where), 0, 2);
}
/** Parts along dim 2. */
export function dsplit(self: Tensor, where: Where): Tensor[] {
  return evenSplit("dsplit", self, whereOf(where), 2, 3);
}

// ---- several tensors

type Many = readonly Tensor[] | readonly [readonly Tensor[]];

/** Tensors expanded to their common shape. */
export function broadcastTensors(...tensors: Many): Tensor[] {
  return ops._broadcastTensors(listed("broadcastTensors", tensors));
}

/** The shape that shapes broadcast to. */
export function broadcastShapes(...shapes: Ints[]): number[] {
  const lists = shapes.map((s) => {
    if (typeof s === "number") return [s];
    if (Array.isArray(s)) return s as number[];
    throw new TypeError_(`broadcastShapes: expected lists of sizes, got ${describe(s)}`);
  });
  const rank = Math.max(0, ...lists.map((s) => s.length));
  const out = new Array<number>(rank).fill(1);
  for (const list of lists) {
    for (const [i, size] of list.entries()) {
      const at = rank - list.length + i;
      if (!Number.isSafeInteger(size) || size < 0) {
        throw new ValueError(`broadcastShapes: expected sizes of at least 0, got [${list}]`);
      }
      if (size === 1 || size === out[at]) continue;
      if (out[at] !== 1) {
        throw new ShapeError(
          `broadcastShapes: shapes ${lists.map((s) => `[${s}]`).join(", ")} do not broadcast`,
        );
      }
      out[at] = size;
    }
  }
  return out;
}

/** A matrix with the given matrices along its diagonal, zeros elsewhere. */
export function blockDiag(...tensors: Many): Tensor {
  return ops._blockDiag(listed("blockDiag", tensors));
}

/** All ways to take one element of each 1-d tensor, as rows. */
export function cartesianProd(...tensors: Many): Tensor {
  return ops._cartesianProd(listed("cartesianProd", tensors));
}

interface MeshgridOptions {
  indexing?: "ij" | "xy";
}

/** Grids of the coordinates in 1-d tensors; `indexing: "xy"` swaps the first two dims. */
export function meshgrid(tensors: readonly Tensor[], options?: MeshgridOptions): Tensor[];
export function meshgrid(...tensors: Tensor[]): Tensor[];
export function meshgrid(...tensors: [...Tensor[], MeshgridOptions]): Tensor[];
export function meshgrid(...args: unknown[]): Tensor[] {
  const { rest, options } = withOptions("meshgrid", args, ["indexing"]);
  const indexing = (options["indexing"] ?? "ij") as "ij" | "xy";
  return ops._meshgrid(listed("meshgrid", rest), indexing);
}

function atLeast(name: string, one: (t: Tensor) => Tensor) {
  function apply(tensor: Tensor): Tensor;
  function apply(tensors: readonly Tensor[]): Tensor[];
  function apply(...tensors: Tensor[]): Tensor[];
  function apply(...args: unknown[]): unknown {
    if (args.length === 1 && args[0] instanceof Tensor) return one(args[0]);
    return listed(name, args).map((t) => one(t));
  }
  return apply;
}

/** The tensor (or each of several) with at least 1 dim. */
export const atleast1d = atLeast("atleast1d", ops._atleast1d);
/** The tensor (or each of several) with at least 2 dims. */
export const atleast2d = atLeast("atleast2d", ops._atleast2d);
/** The tensor (or each of several) with at least 3 dims. */
export const atleast3d = atLeast("atleast3d", ops._atleast3d);

// ---- repeats and combinations

interface RepeatOptions {
  repeats?: number | Tensor;
  dim?: number | null;
  outputSize?: number | null;
}

/**
 * Each element repeated in place, along `dim` or of the flat tensor. With a tensor of repeats
 * alone: the index i as often as repeats[i] says.
 */
export function repeatInterleave(
  self: Tensor,
  repeats?: number | Tensor | RepeatOptions,
  dim?: number | null | RepeatOptions,
  options?: RepeatOptions,
): Tensor;
export function repeatInterleave(self: Tensor, ...args: unknown[]): Tensor {
  const [repeats, dim, size] = bind("repeatInterleave", args, ["repeats", "dim", "outputSize"]);
  const outputSize = (size as number | undefined) ?? null;
  checkTensor(self, "repeatInterleave", "self");
  if (repeats === undefined) {
    if (self.ndim !== 1) {
      throw new ShapeError(`repeatInterleave: expected 1-d repeats, got shape [${self.shape}]`);
    }
    const indices = ops._arange(0, self.shape[0]!, 1, { dtype: self.dtype });
    return ops._repeatInterleave(indices, self, 0, outputSize);
  }
  const axis = (dim as number | undefined) ?? null;
  return ops._repeatInterleave(self, repeats as Tensor | Scalar, axis, outputSize);
}

/** All ways to take r elements of a 1-d tensor in order, as rows. */
export function combinations(
  input: Tensor,
  r?: number | { r?: number; withReplacement?: boolean },
  withReplacement?: boolean | { withReplacement?: boolean },
): Tensor;
export function combinations(input: Tensor, ...args: unknown[]): Tensor {
  const [r, replace] = bind("combinations", args, ["r", "withReplacement"]);
  return ops._combinations(input, (r as number) ?? 2, (replace as boolean) ?? false);
}

// ---- views with two meanings

/** The same memory under another shape, or under another dtype. */
export function view(self: Tensor, ...args: unknown[]): Tensor {
  if (args.length === 1 && args[0] instanceof DType) return ops._viewDtype(self, args[0]);
  const sizes = args.length === 1 && typeof args[0] !== "number" ? args[0] : args;
  return ops._view(self, sizes as readonly number[]);
}

/** Methods of the functions above. */
export const shapeMethods = {
  view(this: Tensor, ...args: unknown[]): Tensor {
    return view(this, ...args);
  },
  split(this: Tensor, ...args: [Ints]): Tensor[] {
    return split(this, ...args);
  },
  tensorSplit(this: Tensor, ...args: [Ints]): Tensor[] {
    return tensorSplit(this, ...args);
  },
  hsplit(this: Tensor, where: Where): Tensor[] {
    return hsplit(this, where);
  },
  vsplit(this: Tensor, where: Where): Tensor[] {
    return vsplit(this, where);
  },
  dsplit(this: Tensor, where: Where): Tensor[] {
    return dsplit(this, where);
  },
  repeatInterleave(this: Tensor, ...args: [number]): Tensor {
    return repeatInterleave(this, ...args);
  },
};

declare module "./tensor.js" {
  interface Tensor {
    /** The same memory under another shape (one size may be -1), or under another dtype. */
    view(size: readonly number[]): Tensor;
    view(...size: number[]): Tensor;
    view(dtype: DType): Tensor;
    /** Parts of one size (the last one may be smaller), or of given sizes, along a dim. */
    split(sizes: Ints | SplitOptions, dim?: number | SplitOptions): Tensor[];
    /** A number of nearly equal parts, or the parts between indices, along a dim. */
    tensorSplit(
      where: Ints | Tensor | TensorSplitOptions,
      dim?: number | TensorSplitOptions,
    ): Tensor[];
    /** Parts side by side: along dim 1, or dim 0 of a 1-d tensor. */
    hsplit(where: Where): Tensor[];
    /** Parts along dim 0. */
    vsplit(where: Where): Tensor[];
    /** Parts along dim 2. */
    dsplit(where: Where): Tensor[];
    /** Each element repeated in place, along `dim` or of the flat tensor. */
    repeatInterleave(
      repeats: number | Tensor | RepeatOptions,
      dim?: number | null | RepeatOptions,
      options?: RepeatOptions,
    ): Tensor;
  }
}
