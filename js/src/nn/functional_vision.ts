// torch.nn.functional: resizing of images.
import { named } from "../arguments.js";
import { describe } from "../dtype.js";
import { NotImplementedError, ShapeError, TypeError_, ValueError } from "../errors.js";
import { checkNames, checkTensor, float, int, isOptions } from "../frame.js";
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";

/** How `interpolate` finds values between pixels. */
export type InterpolateMode =
  "nearest" | "nearest-exact" | "linear" | "bilinear" | "trilinear" | "bicubic" | "area";

/** Options of `interpolate`: one of size and scaleFactor must be given. */
export interface InterpolateOptions {
  size?: number | readonly number[] | null | undefined;
  scaleFactor?: number | readonly number[] | null | undefined;
  mode?: InterpolateMode | undefined;
  /** Whether the corner pixels of input and output coincide. */
  alignCorners?: boolean | null | undefined;
  /** Whether the factors are computed anew from the rounded sizes. */
  recomputeScaleFactor?: boolean | null | undefined;
  /** Whether to widen the filter where the image shrinks (bilinear and bicubic). */
  antialias?: boolean | undefined;
}

const names = [
  "size",
  "scaleFactor",
  "mode",
  "alignCorners",
  "recomputeScaleFactor",
  "antialias",
] as const;

type Resampling = Parameters<typeof ops._resample>[3];

const modes: Record<string, { kind: Resampling; dims: readonly number[]; corners: boolean }> = {
  nearest: { kind: "nearest", dims: [3, 4, 5], corners: false },
  "nearest-exact": { kind: "nearest_exact", dims: [3, 4, 5], corners: false },
  area: { kind: "area", dims: [3, 4, 5], corners: false },
  linear: { kind: "linear", dims: [3], corners: true },
  bilinear: { kind: "linear", dims: [4], corners: true },
  trilinear: { kind: "linear", dims: [5], corners: true },
  bicubic: { kind: "cubic", dims: [4], corners: true },
};

type Read = (x: unknown, op: string, name: string) => number;

function perDim(op: string, name: string, x: unknown, n: number, read: Read): number[] {
  if (typeof x === "number" || typeof x === "bigint") {
    return new Array<number>(n).fill(read(x, op, name));
  }
  if (!Array.isArray(x) || x.length !== n) {
    throw new ShapeError(
      `${op}: expected a number or ${n} of them for ${name}, got ${describe(x)}`,
    );
  }
  return x.map((item) => read(item, op, name));
}

/** Resizes the spatial dims of [N, C, L], [N, C, H, W] or [N, C, D, H, W]. */
export function interpolate(input: Tensor, options: InterpolateOptions): Tensor;
export function interpolate(
  input: Tensor,
  size?: number | readonly number[] | null,
  options?: Omit<InterpolateOptions, "size">,
): Tensor;
export function interpolate(
  input: Tensor,
  size?: number | readonly number[] | null,
  scaleFactor?: number | readonly number[] | null,
  mode?: InterpolateMode,
  alignCorners?: boolean | null,
  recomputeScaleFactor?: boolean | null,
  antialias?: boolean,
): Tensor;
export function interpolate(input: Tensor, ...args: unknown[]): Tensor {
  return resize("interpolate", input, named("interpolate", names, args) as InterpolateOptions);
}

function chosenMode(op: string, input: Tensor, o: InterpolateOptions): Resampling {
  const { mode: name = "nearest", alignCorners = null, antialias = false } = o;
  checkTensor(input, op, "input");
  const mode = Object.hasOwn(modes, name) ? modes[name] : undefined;
  if (!mode) {
    const known = Object.keys(modes).join(", ");
    throw new ValueError(`${op}: expected mode to be one of ${known}, got ${describe(name)}`);
  }
  if (!mode.dims.includes(input.ndim)) {
    const shape = `[${input.shape.join(", ")}]`;
    const message = `${op}: expected ${mode.dims.join(", ")} dims for mode ${name}, got ${shape}`;
    if (input.ndim < 3 || input.ndim > 5) throw new ShapeError(message);
    throw new NotImplementedError(message);
  }
  if (!mode.corners && alignCorners !== null) {
    throw new ValueError(`${op}: alignCorners has no meaning for mode ${name}`);
  }
  if (!antialias) return mode.kind;
  if (name === "bilinear") return "linear_aa";
  if (name === "bicubic") return "cubic_aa";
  throw new ValueError(`${op}: antialias is for modes bilinear and bicubic, got ${name}`);
}

function resize(op: string, input: Tensor, o: InterpolateOptions): Tensor {
  const kind = chosenMode(op, input, o);
  const { size = null, scaleFactor = null } = o;
  const shape = input.shape.slice(2);
  if ((size === null) === (scaleFactor === null)) {
    throw new ValueError(`${op}: expected one of size and scaleFactor`);
  }
  if (size !== null && o.recomputeScaleFactor) {
    throw new ValueError(`${op}: recomputeScaleFactor has no meaning with a size`);
  }
  let scales: number[] | null = null;
  let sizes: number[];
  if (scaleFactor !== null) {
    const factors = perDim(op, "scaleFactor", scaleFactor, shape.length, float);
    sizes = shape.map((n, i) => Math.floor(n * factors[i]!));
    if (!o.recomputeScaleFactor) scales = factors;
  } else {
    sizes = perDim(op, "size", size!, shape.length, int);
  }
  return ops._resample(
    input,
    sizes,
    kind === "area" ? null : scales,
    kind,
    o.alignCorners ?? false,
  );
}

/** Options of `upsample`, `upsampleNearest` and `upsampleBilinear`. */
export interface UpsampleOptions {
  size?: number | readonly number[] | null | undefined;
  scaleFactor?: number | readonly number[] | null | undefined;
}

type Sizes = number | readonly number[] | null | UpsampleOptions;

function upsampleOptions(op: string, size: unknown, scaleFactor: unknown): UpsampleOptions {
  if (isOptions(size)) {
    checkNames(op, size, ["size", "scaleFactor"]);
    return size as UpsampleOptions;
  }
  const named = isOptions(scaleFactor) ? (scaleFactor as UpsampleOptions) : {};
  if (size !== undefined && typeof size !== "number" && size !== null && !Array.isArray(size)) {
    throw new TypeError_(`${op}: expected a size, got ${describe(size)}`);
  }
  return isOptions(scaleFactor)
    ? { ...named, size: size as number }
    : { size: size as number, scaleFactor: scaleFactor as number };
}

/** `interpolate` with mode nearest. */
export function upsampleNearest(input: Tensor, size?: Sizes, scaleFactor?: Sizes): Tensor {
  const op = "upsampleNearest";
  return resize(op, input, { ...upsampleOptions(op, size, scaleFactor), mode: "nearest" });
}

/** `interpolate` with mode bilinear and aligned corners. */
export function upsampleBilinear(input: Tensor, size?: Sizes, scaleFactor?: Sizes): Tensor {
  const op = "upsampleBilinear";
  const given = upsampleOptions(op, size, scaleFactor);
  return resize(op, input, { ...given, mode: "bilinear", alignCorners: true });
}

/** `interpolate` under its older name. */
export const upsample = interpolate;
