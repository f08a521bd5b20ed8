// Adaptive pooling, power-average pooling, unfold and fold of torch.nn.functional.
import { ValueError } from "../errors.js";
import { checkTensor, float } from "../frame.js";
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";
import { bind, floatTuple, tuple } from "./bind.js";
import { avgPool1d, avgPool2d, avgPool3d } from "./functional.gen.js";

type Size = number | readonly number[];
/** One size for all dims, or one per dim; null keeps a dim's size. */
export type OutputSize = number | null | readonly (number | null)[];
type Pair = [output: Tensor, indices: Tensor];

function outputSizes(name: string, input: Tensor, size: OutputSize, rank: number): number[] {
  checkTensor(input, name, "input");
  const wanted = Array.isArray(size) ? (size as (number | null)[]) : Array(rank).fill(size);
  const sizes = input.shape.slice(-rank);
  if (wanted.length !== rank) {
    throw new ValueError(`${name}: expected outputSize of ${rank} numbers, got ${wanted.length}`);
  }
  return wanted.map((n: number | null, i) => n ?? sizes[i] ?? 0);
}

function adaptiveAvg(name: string, rank: number, pool: (x: Tensor, size: number[]) => Tensor) {
  return (input: Tensor, outputSize: OutputSize | { outputSize: OutputSize }): Tensor => {
    const o = bind<{ outputSize: OutputSize }>(name, [outputSize], ["outputSize"], {});
    return pool(input, outputSizes(name, input, o.outputSize, rank));
  };
}

/** Means of outputSize parts of [N, C, L]. */
export const adaptiveAvgPool1d = adaptiveAvg("adaptiveAvgPool1d", 1, ops._adaptiveAvgPool1d);
/** Means of outputSize parts of [N, C, H, W]. */
export const adaptiveAvgPool2d = adaptiveAvg("adaptiveAvgPool2d", 2, ops._adaptiveAvgPool2d);
/** Means of outputSize parts of [N, C, D, H, W]. */
export const adaptiveAvgPool3d = adaptiveAvg("adaptiveAvgPool3d", 3, ops._adaptiveAvgPool3d);

/** The maxima, or with returnIndices also their places. */
export interface AdaptiveMaxPool {
  (input: Tensor, outputSize: OutputSize, returnIndices: true): Pair;
  (input: Tensor, outputSize: OutputSize, options: { returnIndices: true }): Pair;
  (input: Tensor, options: { outputSize: OutputSize; returnIndices: true }): Pair;
  (input: Tensor, outputSize: OutputSize, returnIndices?: false): Tensor;
  (input: Tensor, options: { outputSize: OutputSize; returnIndices?: false }): Tensor;
}

function adaptiveMax(
  name: string,
  rank: number,
  pool: (x: Tensor, size: number[]) => Iterable<Tensor>,
): AdaptiveMaxPool {
  return ((input: Tensor, ...args: unknown[]): Tensor | Pair => {
    const o = bind<{ outputSize: OutputSize; returnIndices: boolean }>(name, args, ["outputSize"], {
      returnIndices: false,
    });
    const size = outputSizes(name, input, o.outputSize, rank);
    const [output, indices] = pool(input, size) as unknown as Pair;
    return o.returnIndices ? [output, indices] : output;
  }) as AdaptiveMaxPool;
}

/** Maxima of outputSize parts of [N, C, L]. */
export const adaptiveMaxPool1d: AdaptiveMaxPool = adaptiveMax(
  "adaptiveMaxPool1d",
  1,
  ops._adaptiveMaxPool1d,
);
/** Maxima of outputSize parts of [N, C, H, W]. */
export const adaptiveMaxPool2d: AdaptiveMaxPool = adaptiveMax(
  "adaptiveMaxPool2d",
  2,
  ops._adaptiveMaxPool2d,
);
/** Maxima of outputSize parts of [N, C, D, H, W]. */
export const adaptiveMaxPool3d: AdaptiveMaxPool = adaptiveMax(
  "adaptiveMaxPool3d",
  3,
  ops._adaptiveMaxPool3d,
);

// ---- power averages

export interface LPPoolOptions {
  stride?: Size | null;
  ceilMode?: boolean;
}

type AvgPool = (
  input: Tensor,
  size: number[],
  stride: number[],
  padding: number[],
  ceilMode: boolean,
) => Tensor;

/** Power averages of order normType. */
export interface LPPool {
  (input: Tensor, normType: number, kernelSize: Size, options?: LPPoolOptions): Tensor;
  (
    input: Tensor,
    normType: number,
    kernelSize: Size,
    stride?: Size | null,
    ceilMode?: boolean | LPPoolOptions,
  ): Tensor;
}

function lpPool(name: string, rank: number, avgPool: AvgPool): LPPool {
  return (input: Tensor, normType: number, kernelSize: Size, ...rest: unknown[]): Tensor => {
    const o = bind<Required<LPPoolOptions>>(name, rest, [], { stride: null, ceilMode: false });
    checkTensor(input, name, "input");
    const power = float(normType, name, "normType");
    const kernel = tuple(kernelSize, rank, name, "kernelSize");
    const stride = o.stride === null ? kernel : tuple(o.stride, rank, name, "stride");
    const mean = avgPool(input.pow(power), kernel, stride, [0], o.ceilMode);
    const count = kernel.reduce((a, b) => a * b, 1);
    return mean
      .sign()
      .mul(mean.abs().relu())
      .mul(count)
      .pow(1 / power);
  };
}

/** (Σ x^p)^(1/p) of windows of [N, C, L]. */
export const lpPool1d: LPPool = lpPool("lpPool1d", 1, avgPool1d);
/** (Σ x^p)^(1/p) of windows of [N, C, H, W]. */
export const lpPool2d: LPPool = lpPool("lpPool2d", 2, avgPool2d);
/** (Σ x^p)^(1/p) of windows of [N, C, D, H, W]. */
export const lpPool3d: LPPool = lpPool("lpPool3d", 3, avgPool3d);

// ---- fractional max pooling

export interface FractionalMaxPoolOptions {
  outputSize?: Size | null;
  /** The output's size as a part of the input's, instead of outputSize. */
  outputRatio?: number | readonly number[] | null;
  returnIndices?: boolean;
  /** The random places of the windows, [N, C, dims], from [0, 1). */
  _randomSamples?: Tensor | null;
}

/** The maxima, or with returnIndices also their places. */
export interface FractionalMaxPool {
  (
    input: Tensor,
    kernelSize: Size,
    options: FractionalMaxPoolOptions & { returnIndices: true },
  ): Pair;
  (
    input: Tensor,
    kernelSize: Size,
    options: FractionalMaxPoolOptions & { returnIndices?: false },
  ): Tensor;
  (
    input: Tensor,
    kernelSize: Size,
    outputSize?: Size | null,
    outputRatio?: number | readonly number[] | null,
    returnIndices?: boolean,
    _randomSamples?: Tensor | null,
  ): Tensor | Pair;
}

function fractionalMax(
  name: string,
  rank: number,
  pool: (x: Tensor, kernel: Size, size: number[], samples: Tensor) => Iterable<Tensor>,
): FractionalMaxPool {
  return ((input: Tensor, kernelSize: Size, ...args: unknown[]): Tensor | Pair => {
    const o = bind<Required<FractionalMaxPoolOptions>>(name, args, [], {
      outputSize: null,
      outputRatio: null,
      returnIndices: false,
      _randomSamples: null,
    });
    checkTensor(input, name, "input");
    const sizes = input.shape.slice(-rank);
    if (o.outputSize === null && o.outputRatio === null) {
      throw new ValueError(`${name}: expected outputSize or outputRatio`);
    }
    const ratios = floatTuple(o.outputRatio ?? 1, rank, name, "outputRatio");
    const wanted =
      o.outputSize === null
        ? sizes.map((n, i) => Math.trunc(n * ratios[i]!))
        : tuple(o.outputSize, rank, name, "outputSize");
    const batch = input.ndim > rank + 1 ? input.size(0) : 1;
    const { dtype, device } = input;
    const samples =
      o._randomSamples ?? ops.rand([batch, input.size(-rank - 1), rank], { dtype, device });
    const [output, indices] = pool(input, kernelSize, wanted, samples) as unknown as Pair;
    return o.returnIndices ? [output, indices] : output;
  }) as FractionalMaxPool;
}

/** Maxima of windows of random steps over [N, C, H, W]; Graham (2014). */
export const fractionalMaxPool2d: FractionalMaxPool = fractionalMax(
  "fractionalMaxPool2d",
  2,
  ops._fractionalMaxPool2d,
);
/** Maxima of windows of random steps over [N, C, D, H, W]; Graham (2014). */
export const fractionalMaxPool3d: FractionalMaxPool = fractionalMax(
  "fractionalMaxPool3d",
  3,
  ops._fractionalMaxPool3d,
);

// ---- windows as columns

/** The windows of [N, C, H, W] as columns [N, C kh kw, L]. */
export const unfold = ops.im2col;
/** Columns [N, C kh kw, L] summed into images [N, C, H, W]. */
export const fold = ops.col2im;
