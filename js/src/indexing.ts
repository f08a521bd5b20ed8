// x.index(...) and x.indexPut_([...], value): PyTorch's indexing with JavaScript values.
import { tensor } from "./convert.js";
import type { Device, Scalar } from "./dtype.js";
import { bool, describe, int64, uint8 } from "./dtype.js";
import { DTypeError, IndexError, TypeError_, ValueError } from "./errors.js";
import * as ops from "./ops.gen.js";
import { Tensor } from "./tensor.js";

/** A range of indices: torch.slice(start, end, step); null stands for the whole side. */
export class Slice {
  constructor(
    readonly start: number | null,
    readonly end: number | null,
    readonly step: number | null,
  ) {}
}

/** torch.slice(a, b, c) is Python's a:b:c; one argument is the end, as in Python's slice(). */
export function slice(
  start: number | null,
  end?: number | null,
  step: number | null = null,
): Slice {
  return end === undefined ? new Slice(null, start, step) : new Slice(start, end, step);
}

export type Index = number | string | null | boolean | Slice | Tensor | readonly unknown[];

function parseSlice(text: string): Slice {
  const match = /^\s*(-?\d+)?\s*:\s*(-?\d+)?\s*(?::\s*(-?\d+)?\s*)?$/.exec(text);
  if (!match) throw new IndexError(`index: expected "a:b:c", "..." or ":", got "${text}"`);
  const [start, end, step] = match.slice(1).map((s) => (s === undefined ? null : Number(s)));
  return new Slice(start!, end!, step!);
}

/** Where an index leads: a view, and the index tensors that are left for its dims. */
interface Place {
  view: Tensor;
  tensors: (Tensor | null)[];
  advanced: boolean;
}

/** A list of integers, of booleans, or of such lists, as an index tensor. */
function listTensor(list: readonly unknown[], device: Device): Tensor {
  const items = list.flat(Infinity);
  const wrong = items.find((i) => typeof i !== "boolean" && !Number.isInteger(i));
  if (wrong !== undefined) {
    throw new IndexError(
      `index: expected a list of integers or booleans, got ${describe(wrong)} in it`,
    );
  }
  const dtype = items.length && items.every((i) => typeof i === "boolean") ? bool : int64;
  return tensor(list as number[], { dtype, device });
}

/** How many dims of the tensor an index uses. */
function consumed(i: Index): number {
  if (i === null || i === "..." || typeof i === "boolean") return 0;
  return i instanceof Tensor && isMask(i) ? i.ndim : 1;
}

function isMask(t: Tensor): boolean {
  return t.dtype === bool || t.dtype === uint8;
}

function sliced(t: Tensor, dim: number, s: Slice): Tensor {
  const step = s.step ?? 1;
  if (step <= 0) {
    throw new ValueError(
      `index: expected a slice step greater than 0, got ${step}; flip() reverses a dim`,
    );
  }
  if (dim >= t.ndim) tooMany(t);
  return ops.slice(t, dim, s.start, s.end, step);
}

function tooMany(t: Tensor): never {
  throw new IndexError(`index: too many indices for a tensor of shape [${t.shape.join(", ")}]`);
}

/** Applies the basic indices and collects the others by the dim that they stand at. */
function locate(self: Tensor, given: readonly Index[]): Place {
  if (!Array.isArray(given)) {
    throw new TypeError_(`index: expected a list of indices, got ${describe(given)}`);
  }
  const index = given.map((i) => (Array.isArray(i) ? listTensor(i, self.device) : i));
  const place: Place = { view: self, tensors: [], advanced: false };
  const used = index.reduce((n: number, i) => n + consumed(i), 0);
  if (used > self.ndim) tooMany(self);
  if (index.filter((i) => i === "...").length > 1) {
    throw new IndexError('index: expected at most one "..."');
  }
  // A mask of n dims stands for n dims of the view, so the list may be shorter than its dims.
  let covered = 0;
  const advance = (dim: number, t: Tensor): void => {
    place.advanced = true;
    for (; covered < dim; covered++) place.tensors.push(null);
    place.tensors.push(t);
    covered += isMask(t) ? t.ndim : 1;
  };
  let dim = 0;
  for (const i of index) {
    if (i === null) {
      place.view = ops.unsqueeze(place.view, dim++);
    } else if (i === "...") {
      dim += self.ndim - used;
    } else if (typeof i === "number") {
      place.view = ops.select(place.view, dim, i);
    } else if (typeof i === "string" || i instanceof Slice) {
      place.view = sliced(place.view, dim++, typeof i === "string" ? parseSlice(i) : i);
    } else if (typeof i === "boolean") {
      place.view = ops.unsqueeze(place.view, dim);
      advance(dim++, tensor([i], { device: self.device }));
    } else if (i instanceof Tensor) {
      dim = byTensor(place, dim, i, advance);
    } else {
      throw new TypeError_(`index: unexpected index ${describe(i)}`);
    }
  }
  return place;
}

function byTensor(
  place: Place,
  dim: number,
  t: Tensor,
  advance: (dim: number, t: Tensor) => void,
): number {
  const { dtype } = t;
  if (dtype.isFloatingPoint || dtype.isComplex) {
    throw new IndexError(
      `index: tensors used as indices must be int64, int32, bool or uint8, got ${dtype.name}` +
        " (long() truncates to integers)",
    );
  }
  if (t.ndim > 0) {
    advance(dim, t);
    return dim + (isMask(t) ? t.ndim : 1);
  }
  if (isMask(t)) {
    place.view = ops.unsqueeze(place.view, dim);
    advance(dim, ops.unsqueeze(t, 0));
    return dim + 1;
  }
  place.view = ops.select(place.view, dim, Number(t.item()));
  return dim;
}

/** Reads; see Tensor.index. */
export function readIndex(self: Tensor, index: readonly Index[]): Tensor {
  const { view, tensors, advanced } = locate(self, index);
  return advanced ? ops._index(view, tensors) : view;
}

/** Writes; see Tensor.indexPut_. */
export function writeIndex(
  self: Tensor,
  index: readonly Index[],
  value: Tensor | Scalar,
  accumulate: boolean,
): void {
  const { view, tensors, advanced } = locate(self, index);
  if (!advanced) {
    if (accumulate) view.add_(value);
    else if (value instanceof Tensor) view.copy_(value);
    else view.fill_(value);
    return;
  }
  const mask = tensors.length === 1 ? tensors[0]! : null;
  if (!(value instanceof Tensor) && !accumulate && mask?.dtype === bool) {
    const missing = view.ndim - mask.ndim;
    ops.maskedFill_(view, mask.reshape([...mask.shape, ...Array(missing).fill(1)]), value);
    return;
  }
  ops._indexPut_(view, tensors, valueTensor(view, value), accumulate);
}

/** A number as a 0-d tensor of the written tensor's dtype. */
function valueTensor(view: Tensor, value: Tensor | Scalar): Tensor {
  if (!(value instanceof Tensor))
    return ops.full([], value, { dtype: view.dtype, device: view.device });
  if (value.dtype !== view.dtype) {
    throw new DTypeError(
      `indexPut_: expected values of dtype ${view.dtype.name}, got ${value.dtype.name}`,
    );
  }
  return value;
}
