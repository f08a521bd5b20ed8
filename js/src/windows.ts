// Window functions for spectra: Harris, "On the use of windows for harmonic analysis" (1978).
import { named } from "./arguments.js";
import type { DeviceLike, DType } from "./dtype.js";
import { ValueError } from "./errors.js";
import * as ops from "./ops.gen.js";
import type { Tensor } from "./tensor.js";

export interface WindowOptions {
  /** Whether it repeats after its last point, as spectra want (default), or is symmetric. */
  periodic?: boolean;
  dtype?: DType | null;
  device?: DeviceLike | null;
  requiresGrad?: boolean;
}

const common = ["dtype", "device", "requiresGrad"];

/** `shape` of the positions 0, 1, ..., of which `last` is the end of a symmetric window. */
function windowOf(
  op: string,
  length: number,
  o: WindowOptions,
  shape: (k: Tensor, last: number) => Tensor,
): Tensor {
  if (!Number.isInteger(length) || length < 0) {
    throw new ValueError(`${op}: expected a length of at least 0, got ${length}`);
  }
  const { periodic = true, dtype, device, requiresGrad = false } = o;
  if (length <= 1) return ops.ones([length], { dtype, device, requiresGrad });
  const k = ops._arange(0, length, 1, { dtype: dtype ?? ops.zeros([0]).dtype, device });
  const window = shape(k, periodic ? length : length - 1);
  return requiresGrad ? window.requiresGrad_() : window;
}

/** a0 - a1 cos(2 pi k / last) + a2 cos(4 pi k / last) */
const cosines = (a0: number, a1: number, a2: number) => (k: Tensor, last: number) => {
  const turns = k.mul((2 * Math.PI) / last);
  const first = turns.cos().mul(-a1).add(a0);
  return a2 === 0 ? first : first.add(turns.mul(2).cos().mul(a2));
};

type Window = (
  length: number,
  periodic?: boolean | WindowOptions,
  options?: WindowOptions,
) => Tensor;

const plain =
  (op: string, shape: (k: Tensor, last: number) => Tensor): Window =>
  (length, ...args) =>
    windowOf(op, length, named(op, ["periodic", ...common], args), shape);

/** Hann's window: 0.5 - 0.5 cos(2 pi k / N). */
export const hannWindow: Window = plain("hannWindow", cosines(0.5, 0.5, 0));
/** Blackman's window: 0.42 - 0.5 cos(2 pi k / N) + 0.08 cos(4 pi k / N). */
export const blackmanWindow: Window = plain("blackmanWindow", cosines(0.42, 0.5, 0.08));
/** Bartlett's window: a triangle from 0 to 1 to 0. */
export const bartlettWindow: Window = plain("bartlettWindow", (k, last) =>
  k
    .mul(2 / last)
    .sub(1)
    .abs()
    .neg()
    .add(1),
);

/** Hamming's window: alpha - beta cos(2 pi k / N). */
export function hammingWindow(
  length: number,
  periodic?: boolean | (WindowOptions & { alpha?: number; beta?: number }),
  alpha?: number | (WindowOptions & { beta?: number }),
  beta?: number | WindowOptions,
  options?: WindowOptions,
): Tensor;
export function hammingWindow(length: number, ...args: unknown[]): Tensor {
  const o = named("hammingWindow", ["periodic", "alpha", "beta", ...common], args);
  const { alpha = 0.54, beta = 0.46 } = o as { alpha?: number; beta?: number };
  return windowOf("hammingWindow", length, o, cosines(alpha, beta, 0));
}

/** Kaiser's window: i0(beta sqrt(1 - x^2)) / i0(beta) for x from -1 to 1. */
export function kaiserWindow(
  length: number,
  periodic?: boolean | (WindowOptions & { beta?: number }),
  beta?: number | WindowOptions,
  options?: WindowOptions,
): Tensor;
export function kaiserWindow(length: number, ...args: unknown[]): Tensor {
  const o = named("kaiserWindow", ["periodic", "beta", ...common], args);
  const { beta = 12 } = o as { beta?: number };
  return windowOf("kaiserWindow", length, o, (k, last) => {
    const x = k.mul(2 / last).sub(1);
    const inside = x.mul(x).neg().add(1).clamp(0).sqrt();
    return ops.i0(inside.mul(beta)).div(ops.i0(ops.fullLike(k.narrow(0, 0, 1), beta)));
  });
}
