// Convolutions and pooling of torch.nn.functional whose arguments choose between operators.
import { isOptions } from "../frame.js";
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";
import { bind } from "./bind.js";

type Size = number | readonly number[];

// ---- convolutions: padding may be a name

export interface ConvOptions {
  bias?: Tensor | null;
  stride?: Size;
  /** Rows added on both sides, "same" (stride 1 only) or "valid". */
  padding?: Size | "same" | "valid";
  dilation?: Size;
  groups?: number;
}

/** input, weight [out, C / groups, ...kernel], then the options by position or by name. */
export interface Convolution {
  (
    input: Tensor,
    weight: Tensor,
    bias?: Tensor | null,
    stride?: Size,
    padding?: Size | "same" | "valid",
    dilation?: Size,
    groups?: number,
  ): Tensor;
  (input: Tensor, weight: Tensor, options: ConvOptions): Tensor;
  (input: Tensor, weight: Tensor, bias: Tensor | null, options: ConvOptions): Tensor;
}

type Plain = (input: Tensor, weight: Tensor, ...rest: never[]) => Tensor;

const list = (size: Size) => (typeof size === "number" ? [size] : size);

function convolution(name: string, rank: number, plain: Plain): Convolution {
  return (input: Tensor, weight: Tensor, ...args: unknown[]): Tensor => {
    const last = args.at(-1);
    const padding = isOptions(last) ? (last as ConvOptions).padding : args[2];
    if (typeof padding !== "string") return plain(input, weight, ...(args as never[]));
    const o = bind<Required<ConvOptions>>(name, args, [], {
      bias: null,
      stride: 1,
      padding: 0,
      dilation: 1,
      groups: 1,
    });
    const { bias, stride, dilation, groups } = o;
    const mode = padding as "same" | "valid";
    return ops._convPadded(rank, input, weight, bias, list(stride), mode, list(dilation), groups);
  };
}

/** Convolution of [N, C, L] by a weight [out, C / groups, k]. */
export const conv1d: Convolution = convolution("conv1d", 1, ops.conv1d);
/** Convolution of [N, C, H, W] by a weight [out, C / groups, kh, kw]. */
export const conv2d: Convolution = convolution("conv2d", 2, ops.conv2d);
/** Convolution of [N, C, D, H, W] by a weight [out, C / groups, kd, kh, kw]. */
export const conv3d: Convolution = convolution("conv3d", 3, ops.conv3d);

// ---- max pooling: the places of the maxima on request

export interface MaxPoolOptions {
  /** Default: the kernel's size. */
  stride?: Size | null;
  padding?: Size;
  dilation?: Size;
  ceilMode?: boolean;
}

/** The pooled tensor, or with returnIndices also the places of the maxima. */
export interface MaxPool {
  (input: Tensor, kernelSize: Size, options: MaxPoolOptions & { returnIndices: true }): Pooled;
  (input: Tensor, options: { kernelSize: Size; returnIndices: true } & MaxPoolOptions): Pooled;
  (
    input: Tensor,
    kernelSize: Size,
    stride: Size | null,
    padding: Size,
    dilation: Size,
    ceilMode: boolean,
    returnIndices: true,
  ): Pooled;
  (
    input: Tensor,
    kernelSize: Size,
    stride?: Size | null,
    padding?: Size,
    dilation?: Size,
    ceilMode?: boolean,
    returnIndices?: false,
  ): Tensor;
  (input: Tensor, kernelSize: Size, options: MaxPoolOptions & { returnIndices?: false }): Tensor;
  (input: Tensor, options: { kernelSize: Size; returnIndices?: false } & MaxPoolOptions): Tensor;
}
export type Pooled = [output: Tensor, indices: Tensor];

interface MaxPoolArgs extends Required<MaxPoolOptions> {
  kernelSize: Size;
  returnIndices: boolean;
}

type WithIndices = (
  input: Tensor,
  kernelSize: Size,
  stride: Size | null,
  padding: Size,
  dilation: Size,
  ceilMode: boolean,
) => Iterable<Tensor>;

function maxPool(name: string, pool: WithIndices): MaxPool {
  return ((input: Tensor, ...args: unknown[]): Tensor | Pooled => {
    const o = bind<MaxPoolArgs>(name, args, ["kernelSize"], {
      stride: null,
      padding: 0,
      dilation: 1,
      ceilMode: false,
      returnIndices: false,
    });
    const [output, indices] = pool(
      input,
      o.kernelSize,
      o.stride,
      o.padding,
      o.dilation,
      o.ceilMode,
    ) as unknown as Pooled;
    return o.returnIndices ? [output, indices] : output;
  }) as MaxPool;
}

/** Maxima of windows of [N, C, L]. */
export const maxPool1d: MaxPool = maxPool("maxPool1d", ops.maxPool1dWithIndices as WithIndices);
/** Maxima of windows of [N, C, H, W]. */
export const maxPool2d: MaxPool = maxPool("maxPool2d", ops.maxPool2dWithIndices);
/** Maxima of windows of [N, C, D, H, W]. */
export const maxPool3d: MaxPool = maxPool("maxPool3d", ops.maxPool3dWithIndices);
