// Ranges, whose start, end and step are told apart by their number.
import type { DeviceLike, DType, Scalar } from "./dtype.js";
import { TypeError_ } from "./errors.js";
import { checkNames, isOptions } from "./frame.js";
import * as ops from "./ops.gen.js";
import type { Tensor } from "./tensor.js";

export interface ArangeOptions {
  start?: Scalar;
  end?: Scalar;
  step?: Scalar;
  dtype?: DType | null;
  device?: DeviceLike | null;
  requiresGrad?: boolean;
}

// Integers beyond 2^53 count as integers too, with the value the number has.
const exact = (x: unknown): Scalar =>
  typeof x === "number" && Number.isInteger(x) && !Number.isSafeInteger(x)
    ? BigInt(x)
    : (x as Scalar);

/**
 * Numbers from start (0) to before end, by step (1): `arange(5)`, `arange(1, 5)`,
 * `arange(0, 1, 0.1)`.
 * int64 when all are integers; give bigints where a number would not be exact.
 */
export function arange(end: Scalar, options?: ArangeOptions): Tensor;
export function arange(start: Scalar, end: Scalar, options?: ArangeOptions): Tensor;
export function arange(start: Scalar, end: Scalar, step: Scalar, options?: ArangeOptions): Tensor;
export function arange(options: ArangeOptions & { end: Scalar }): Tensor;
export function arange(...args: unknown[]): Tensor {
  const last = args.at(-1);
  let named: ArangeOptions = {};
  if (isOptions(last)) {
    checkNames("arange", last, ["start", "end", "step", "dtype", "device", "requiresGrad"]);
    named = last as ArangeOptions;
    args = args.slice(0, -1);
  }
  if (args.length > 3) {
    throw new TypeError_(`arange: expected at most 3 numbers, got ${args.length}`);
  }
  const onlyEnd = args.length === 1 && named.end === undefined;
  const [start, end, step] = onlyEnd ? [undefined, args[0]] : args;
  const stop = end ?? named.end;
  if (stop === undefined) throw new TypeError_('arange: missing argument "end"');
  const { dtype, device, requiresGrad } = named;
  return ops._arange(
    exact(start ?? named.start ?? 0),
    exact(stop),
    exact(step ?? named.step ?? 1),
    { dtype, device, requiresGrad },
  );
}
