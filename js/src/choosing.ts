// Operators whose forms in PyTorch share one name: where, nonzero, median, unique, gradient, ...
import { describe, toNumber, type Scalar } from "./dtype.js";
import { TypeError_ } from "./errors.js";
import { install, named } from "./arguments.js";
import { checkNames, checkTensor, type Named } from "./frame.js";
import * as ops from "./ops.gen.js";
import { Tensor } from "./tensor.js";

// ---- where, nonzero

/** `input` where the condition holds, else `other`; alone, the coordinates of true elements. */
export function where(condition: Tensor): Tensor[];
export function where(condition: Tensor, input: Tensor | Scalar, other: Tensor | Scalar): Tensor;
export function where(
  condition: Tensor,
  input?: Tensor | Scalar,
  other?: Tensor | Scalar,
): Tensor | Tensor[] {
  if (input === undefined && other === undefined) return ops._nonzeroTuple(condition);
  if (other === undefined) throw new TypeError_('where: missing argument "other"');
  return ops._where(condition, input!, other);
}

/** Coordinates of the elements that are not 0: [n, dims], or with asTuple one tensor per dim. */
export function nonzero(input: Tensor, options?: { asTuple?: false }): Tensor;
export function nonzero(input: Tensor, options: { asTuple: true }): Tensor[];
export function nonzero(input: Tensor, options: { asTuple?: boolean } = {}): Tensor | Tensor[] {
  checkNames("nonzero", options, ["asTuple"]);
  return options.asTuple ? ops._nonzeroTuple(input) : ops.argwhere(input);
}

// ---- median

type ValuesAndIndices = Named<"values" | "indices">;
interface DimOptions {
  dim: number;
  keepdim?: boolean;
}

function medianOf(
  op: string,
  all: (x: Tensor) => Tensor,
  along: (x: Tensor, dim: number, keepdim: boolean) => ValuesAndIndices,
) {
  return (input: Tensor, args: unknown[]): Tensor | ValuesAndIndices => {
    const { dim, keepdim } = named(op, ["dim", "keepdim"], args) as Partial<DimOptions>;
    return dim === undefined ? all(input) : along(input, dim, keepdim ?? false);
  };
}

const medianBy = medianOf("median", ops._median, ops._medianDim);
const nanmedianBy = medianOf("nanmedian", ops._nanmedian, ops._nanmedianDim);

/** The lower median of all elements, or along a dim; NaN where there is a NaN. */
export function median(input: Tensor): Tensor;
export function median(input: Tensor, dim: number, keepdim?: boolean): ValuesAndIndices;
export function median(input: Tensor, options: DimOptions): ValuesAndIndices;
export function median(input: Tensor, ...args: unknown[]): Tensor | ValuesAndIndices {
  return medianBy(input, args);
}

/** The lower median of what is not NaN. */
export function nanmedian(input: Tensor): Tensor;
export function nanmedian(input: Tensor, dim: number, keepdim?: boolean): ValuesAndIndices;
export function nanmedian(input: Tensor, options: DimOptions): ValuesAndIndices;
export function nanmedian(input: Tensor, ...args: unknown[]): Tensor | ValuesAndIndices {
  return nanmedianBy(input, args);
}

// ---- unique

export interface UniqueConsecutiveOptions {
  returnInverse?: boolean;
  returnCounts?: boolean;
  dim?: number | null;
}
export interface UniqueOptions extends UniqueConsecutiveOptions {
  sorted?: boolean;
}

function distinct(input: Tensor, o: UniqueConsecutiveOptions, consecutive: boolean): unknown {
  const { values, inverse, counts } = ops._unique(input, o.dim ?? null, consecutive);
  if (!o.returnInverse && !o.returnCounts) return values;
  return [values, ...(o.returnInverse ? [inverse] : []), ...(o.returnCounts ? [counts] : [])];
}

/** The distinct elements, sorted, or the distinct slices along `dim`; a list when more is asked. */
export function unique(
  input: Tensor,
  options?: UniqueOptions & { returnInverse?: false; returnCounts?: false },
): Tensor;
export function unique(input: Tensor, options: UniqueOptions): Tensor[];
export function unique(
  input: Tensor,
  sorted?: boolean,
  returnInverse?: boolean,
  returnCounts?: boolean,
  dim?: number | null,
): Tensor | Tensor[];
export function unique(input: Tensor, ...args: unknown[]): unknown {
  const names = ["sorted", "returnInverse", "returnCounts", "dim"] as const;
  return distinct(input, named("unique", names, args) as Partial<UniqueOptions>, false);
}

/** Leaves one of each run of equal neighbours. */
export function uniqueConsecutive(
  input: Tensor,
  options?: UniqueConsecutiveOptions & { returnInverse?: false; returnCounts?: false },
): Tensor;
export function uniqueConsecutive(input: Tensor, options: UniqueConsecutiveOptions): Tensor[];
export function uniqueConsecutive(
  input: Tensor,
  returnInverse?: boolean,
  returnCounts?: boolean,
  dim?: number | null,
): Tensor | Tensor[];
export function uniqueConsecutive(input: Tensor, ...args: unknown[]): unknown {
  const names = ["returnInverse", "returnCounts", "dim"] as const;
  const options = named("uniqueConsecutive", names, args) as Partial<UniqueConsecutiveOptions>;
  return distinct(input, options, true);
}

// ---- histogramdd, gradient

/** Counts of the points [..., dims] in a grid: equal bins, or bins between given edges. */
export function histogramdd(
  input: Tensor,
  bins: number | readonly number[] | readonly Tensor[],
  options: { range?: readonly number[] | null; weight?: Tensor | null; density?: boolean } = {},
): { hist: Tensor; binEdges: Tensor[] } & Iterable<Tensor | Tensor[]> {
  checkNames("histogramdd", options, ["range", "weight", "density"]);
  const { range = null, weight = null, density = false } = options;
  checkTensor(input, "histogramdd", "input");
  const dims = input.shape.at(-1) ?? 0;
  const list = typeof bins === "number" ? new Array<number>(dims).fill(bins) : bins;
  if (!Array.isArray(list)) {
    throw new TypeError_(`histogramdd: expected a number or a list of bins, got ${describe(bins)}`);
  }
  const edges = list.length > 0 && list[0] instanceof Tensor;
  const [hist, ...binEdges] = edges
    ? ops._histogramddEdges(input, list as Tensor[], weight, density)
    : ops._histogramddCounts(input, list as number[], range, weight, density);
  return {
    hist: hist!,
    binEdges,
    *[Symbol.iterator]() {
      yield hist!;
      yield binEdges;
    },
  };
}

export interface GradientOptions {
  /** A step, a step per dim, or the coordinates of the points per dim. */
  spacing?: Scalar | readonly Scalar[] | readonly Tensor[] | null;
  dim?: number | readonly number[] | null;
  edgeOrder?: number;
}

/** Finite differences along dims, second-order accurate inside; one tensor per dim. */
export function gradient(input: Tensor, options: GradientOptions = {}): Tensor[] {
  checkNames("gradient", options, ["spacing", "dim", "edgeOrder"]);
  checkTensor(input, "gradient", "input");
  const { spacing, dim, edgeOrder = 1 } = options;
  const dims =
    dim === undefined || dim === null
      ? Array.from({ length: input.ndim }, (_, i) => i)
      : typeof dim === "number"
        ? [dim]
        : dim;
  const given = spacing ?? 1;
  if (!Array.isArray(given)) {
    const step = toNumber(given as Scalar, "gradient", "spacing");
    return ops._gradient(input, new Array<number>(dims.length).fill(step), [], dims, edgeOrder);
  }
  if (given[0] instanceof Tensor) {
    return ops._gradient(input, [], given as Tensor[], dims, edgeOrder);
  }
  const steps = (given as Scalar[]).map((h) => toNumber(h, "gradient", "spacing"));
  return ops._gradient(input, steps, [], dims, edgeOrder);
}

// ---- methods

declare module "./tensor.js" {
  interface Tensor {
    /** This tensor where the condition holds, else `other`. */
    where(condition: Tensor, other: Tensor | Scalar): Tensor;
    /** Coordinates of the elements that are not 0, [n, dims]. */
    nonzero(options?: { asTuple?: false }): Tensor;
    /** Coordinates of the elements that are not 0, one tensor per dim. */
    nonzero(options: { asTuple: true }): Tensor[];
    /** The lower median of all elements, or along a dim. */
    median(): Tensor;
    median(dim: number, keepdim?: boolean): ValuesAndIndices;
    median(options: DimOptions): ValuesAndIndices;
    /** The lower median of what is not NaN. */
    nanmedian(): Tensor;
    nanmedian(dim: number, keepdim?: boolean): ValuesAndIndices;
    nanmedian(options: DimOptions): ValuesAndIndices;
    /** The distinct elements or slices; see torch.unique. */
    unique(options?: UniqueOptions & { returnInverse?: false; returnCounts?: false }): Tensor;
    unique(options: UniqueOptions): Tensor[];
    /** Leaves one of each run of equal neighbours; see torch.uniqueConsecutive. */
    uniqueConsecutive(
      options?: UniqueConsecutiveOptions & { returnInverse?: false; returnCounts?: false },
    ): Tensor;
    uniqueConsecutive(options: UniqueConsecutiveOptions): Tensor[];
  }
}

type Method = (this: Tensor, ...args: never[]) => unknown;
const methods: Record<string, Method> = {
  where(condition: Tensor, other: Tensor | Scalar) {
    return where(condition, this, other);
  },
  nonzero(options: { asTuple: true }) {
    return nonzero(this, options);
  },
  median(...args: unknown[]) {
    return medianBy(this, args);
  },
  nanmedian(...args: unknown[]) {
    return nanmedianBy(this, args);
  },
  unique(...args: never[]) {
    return unique(this, ...args);
  },
  uniqueConsecutive(...args: never[]) {
    return uniqueConsecutive(this, ...args);
  },
};

/** Puts the methods of this file on Tensor's prototype. */
export function installChoosing(prototype: object): void {
  install(prototype, methods);
}
