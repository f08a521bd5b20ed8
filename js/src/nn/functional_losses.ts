// Losses of torch.nn.functional that take JavaScript functions or lists.
import { named } from "../arguments.js";
import { tensor } from "../convert.js";
import { int64 } from "../dtype.js";
import { ShapeError, ValueError } from "../errors.js";
import { checkNames, checkTensor } from "../frame.js";
import * as ops from "../ops.gen.js";
import { Tensor } from "../tensor.js";
import { items } from "./bind.js";

/** A distance of two batches of vectors, one number for each pair. */
export type DistanceFunction = (a: Tensor, b: Tensor) => Tensor;

/** Options of `tripletMarginWithDistanceLoss`. */
export interface TripletDistanceOptions {
  /** The Euclidean distance by default. */
  distanceFunction?: DistanceFunction | null | undefined;
  margin?: number | undefined;
  /** Whether to use the distance of positive and negative where that is smaller. */
  swap?: boolean | undefined;
  reduction?: "none" | "mean" | "sum" | undefined;
}

/** max(0, distance to the positive - distance to the negative + margin). */
export function tripletMarginWithDistanceLoss(
  anchor: Tensor,
  positive: Tensor,
  negative: Tensor,
  options: TripletDistanceOptions = {},
): Tensor {
  const op = "tripletMarginWithDistanceLoss";
  checkNames(op, options, ["distanceFunction", "margin", "swap", "reduction"]);
  const { margin = 1, swap = false, reduction = "mean" } = options;
  const distance = options.distanceFunction ?? ((a, b) => ops.pairwiseDistance(a, b));
  if (!["none", "mean", "sum"].includes(reduction)) {
    throw new ValueError(`${op}: expected reduction "none", "mean" or "sum", got "${reduction}"`);
  }
  if (!(margin > 0)) throw new ValueError(`${op}: expected margin above 0, got ${margin}`);
  for (const [name, t] of Object.entries({ anchor, positive, negative })) checkTensor(t, op, name);
  if (anchor.ndim !== positive.ndim || anchor.ndim !== negative.ndim) {
    const shapes = [anchor, positive, negative].map((t) => `[${t.shape.join(", ")}]`);
    throw new ShapeError(`${op}: expected as many dims in each, got shapes ${shapes.join(", ")}`);
  }
  const near = distance(anchor, positive);
  let far = distance(anchor, negative);
  if (swap) far = ops.minimum(far, distance(positive, negative));
  const losses = ops._positivePart(ops.add(ops.sub(near, far), margin));
  if (reduction === "none") return losses;
  const total = ops.sum(losses);
  return reduction === "sum" ? total : ops.div(total, losses.numel());
}

/** Options of `ctcLoss`. */
export interface CtcOptions {
  /** The class that stands for no label. */
  blank?: number | undefined;
  reduction?: "none" | "mean" | "sum" | undefined;
  /** Whether a sample that cannot be aligned gives 0 instead of infinity. */
  zeroInfinity?: boolean | undefined;
}

/** CTC loss of log-probabilities [T, N, C] and targets [N, L], or all targets in one row. */
export function ctcLoss(
  logProbs: Tensor,
  targets: Tensor,
  inputLengths: Tensor | readonly number[],
  targetLengths: Tensor | readonly number[],
  ...args: [options?: CtcOptions] | [blank?: number, reduction?: string, zeroInfinity?: boolean]
): Tensor {
  const given = named("ctcLoss", ["blank", "reduction", "zeroInfinity"], args) as CtcOptions;
  const { blank = 0, reduction = "mean", zeroInfinity = false } = given;
  const lengths = (x: Tensor | readonly number[], name: string) =>
    x instanceof Tensor ? x : tensor(items(x, "ctcLoss", name), { dtype: int64 });
  return ops._ctcLoss(
    logProbs,
    targets,
    lengths(inputLengths, "inputLengths"),
    lengths(targetLengths, "targetLengths"),
    blank,
    reduction,
    zeroInfinity,
  );
}
