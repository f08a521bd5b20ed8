// x.index(...) and x.indexPut_([...], value): PyTorch's indexing with JavaScript values.
import type { Scalar } from "./dtype.js";
import { IndexError, TypeError_ } from "./errors.js";
import { describe } from "./dtype.js";
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

/** Reads with basic indices only; lists and tensors are left to the caller. */
export function readIndex(self: Tensor, index: readonly Index[]): Tensor {
  let t: Tensor = self;
  let dim = 0;
  const used = index.filter((i) => i !== null && i !== "...").length;
  for (const i of index) {
    if (i === null) {
      t = ops.unsqueeze(t, dim++);
    } else if (i === "...") {
      dim += self.ndim - used;
    } else if (typeof i === "number") {
      t = ops.select(t, dim, i);
    } else if (typeof i === "string" || i instanceof Slice) {
      const s = typeof i === "string" ? parseSlice(i) : i;
      t = ops.slice(t, dim++, s.start, s.end, s.step ?? 1);
    } else {
      throw new TypeError_(`index: unexpected index ${describe(i)}`);
    }
  }
  return t;
}

export function writeIndex(
  self: Tensor,
  index: readonly Index[],
  value: Tensor | Scalar,
  _accumulate: boolean,
): void {
  const place = readIndex(self, index);
  if (value instanceof Tensor) place.copy_(value);
  else place.fill_(value);
}
