// Layers that rearrange, resize and compare.
import type { Tensor } from "../tensor.js";
import { bind, py, type Init } from "./bind.js";
import type { Size } from "./conv.js";
import { functional } from "./functional_lookup.js";
import { Module } from "./module.js";

const pixelShuffle = functional("pixelShuffle");
/** [N, C·r², H, W] → [N, C, H·r, W·r]. */
export class PixelShuffle extends Module {
  constructor(readonly upscaleFactor: number) {
    super();
  }
  forward(input: Tensor): Tensor {
    return pixelShuffle(input, this.upscaleFactor);
  }
  override extraRepr(): string {
    return `upscale_factor=${this.upscaleFactor}`;
  }
}

const pixelUnshuffle = functional("pixelUnshuffle");
/** [N, C, H·r, W·r] → [N, C·r², H, W]. */
export class PixelUnshuffle extends Module {
  constructor(readonly downscaleFactor: number) {
    super();
  }
  forward(input: Tensor): Tensor {
    return pixelUnshuffle(input, this.downscaleFactor);
  }
  override extraRepr(): string {
    return `downscale_factor=${this.downscaleFactor}`;
  }
}

const channelShuffle = functional("channelShuffle");
/** Interleaves groups of channels. */
export class ChannelShuffle extends Module {
  constructor(readonly groups: number) {
    super();
  }
  forward(input: Tensor): Tensor {
    return channelShuffle(input, this.groups);
  }
  override extraRepr(): string {
    return `groups=${this.groups}`;
  }
}

export interface UpsampleOptions {
  size?: Size | null;
  scaleFactor?: number | readonly number[] | null;
  mode?: "nearest" | "linear" | "bilinear" | "bicubic" | "trilinear";
  alignCorners?: boolean | null;
  recomputeScaleFactor?: boolean | null;
}
const interpolate = functional("interpolate");
/** Resizes to `size` or by `scaleFactor`. */
export class Upsample extends Module {
  readonly size: Size | null;
  readonly scaleFactor: number | readonly number[] | null;
  readonly mode: string;
  readonly alignCorners: boolean | null;
  readonly recomputeScaleFactor: boolean | null;
  constructor(
    ...args: Init<
      [],
      [size: Size | null, scaleFactor: number | readonly number[] | null, mode: string],
      UpsampleOptions
    >
  ) {
    super();
    const o = bind<Required<UpsampleOptions>>("Upsample", args, [], {
      size: null,
      scaleFactor: null,
      mode: "nearest",
      alignCorners: null,
      recomputeScaleFactor: null,
    });
    this.size = o.size;
    this.scaleFactor = o.scaleFactor;
    this.mode = o.mode;
    this.alignCorners = o.alignCorners;
    this.recomputeScaleFactor = o.recomputeScaleFactor;
  }
  forward(input: Tensor): Tensor {
    const { size, scaleFactor, mode, alignCorners, recomputeScaleFactor } = this;
    const base = { size, scaleFactor, mode, alignCorners };
    return interpolate(
      input,
      recomputeScaleFactor === null ? base : { ...base, recomputeScaleFactor },
    );
  }
  override extraRepr(): string {
    const { scaleFactor, size, mode } = this;
    const what = scaleFactor === null ? `size=${py(size)}` : `scale_factor=${py(scaleFactor)}`;
    return `${what}, mode=${py(mode)}`;
  }
}

const fold = functional("fold");
export interface FoldOptions {
  dilation?: Size;
  padding?: Size;
  stride?: Size;
}
/** Adds blocks [N, C·k, L] back into an image [N, C, H, W]. */
export class Fold extends Module {
  readonly outputSize: Size;
  readonly kernelSize: Size;
  readonly dilation: Size;
  readonly padding: Size;
  readonly stride: Size;
  constructor(
    ...args: Init<
      [outputSize: Size, kernelSize: Size],
      [dilation: Size, padding: Size, stride: Size],
      FoldOptions
    >
  ) {
    super();
    const o = bind<Required<FoldOptions> & { outputSize: Size; kernelSize: Size }>(
      "Fold",
      args,
      ["outputSize", "kernelSize"],
      { dilation: 1, padding: 0, stride: 1 },
    );
    this.outputSize = o.outputSize;
    this.kernelSize = o.kernelSize;
    this.dilation = o.dilation;
    this.padding = o.padding;
    this.stride = o.stride;
  }
  forward(input: Tensor): Tensor {
    const { outputSize, kernelSize, dilation, padding, stride } = this;
    return fold(input, outputSize, kernelSize, dilation, padding, stride);
  }
  override extraRepr(): string {
    return (
      `output_size=${py(this.outputSize)}, kernel_size=${py(this.kernelSize)}, ` +
      `dilation=${py(this.dilation)}, padding=${py(this.padding)}, stride=${py(this.stride)}`
    );
  }
}

const unfold = functional("unfold");
/** Takes blocks out of an image: [N, C, H, W] → [N, C·k, L]. */
export class Unfold extends Module {
  readonly kernelSize: Size;
  readonly dilation: Size;
  readonly padding: Size;
  readonly stride: Size;
  constructor(
    ...args: Init<[kernelSize: Size], [dilation: Size, padding: Size, stride: Size], FoldOptions>
  ) {
    super();
    const o = bind<Required<FoldOptions> & { kernelSize: Size }>("Unfold", args, ["kernelSize"], {
      dilation: 1,
      padding: 0,
      stride: 1,
    });
    this.kernelSize = o.kernelSize;
    this.dilation = o.dilation;
    this.padding = o.padding;
    this.stride = o.stride;
  }
  forward(input: Tensor): Tensor {
    return unfold(input, this.kernelSize, this.dilation, this.padding, this.stride);
  }
  override extraRepr(): string {
    return (
      `kernel_size=${py(this.kernelSize)}, dilation=${py(this.dilation)}, ` +
      `padding=${py(this.padding)}, stride=${py(this.stride)}`
    );
  }
}

const cosineSimilarity = functional("cosineSimilarity");
/** Cosine of the angle between two tensors along `dim`. */
export class CosineSimilarity extends Module<[Tensor, Tensor], Tensor> {
  readonly dim: number;
  readonly eps: number;
  constructor(...args: Init<[], [dim: number, eps: number], { dim?: number; eps?: number }>) {
    super();
    const defaults = { dim: 1, eps: 1e-8 };
    const o = bind<typeof defaults>("CosineSimilarity", args, [], defaults);
    this.dim = o.dim;
    this.eps = o.eps;
  }
  forward(x1: Tensor, x2: Tensor): Tensor {
    return cosineSimilarity(x1, x2, this.dim, this.eps);
  }
}

const pairwiseDistance = functional("pairwiseDistance");
/** p-norm of the difference along the last dim. */
export class PairwiseDistance extends Module<[Tensor, Tensor], Tensor> {
  readonly p: number;
  readonly eps: number;
  readonly keepdim: boolean;
  constructor(
    ...args: Init<
      [],
      [p: number, eps: number, keepdim: boolean],
      { p?: number; eps?: number; keepdim?: boolean }
    >
  ) {
    super();
    const defaults = { p: 2, eps: 1e-6, keepdim: false };
    const o = bind<typeof defaults>("PairwiseDistance", args, [], defaults);
    this.p = o.p;
    this.eps = o.eps;
    this.keepdim = o.keepdim;
  }
  forward(x1: Tensor, x2: Tensor): Tensor {
    return pairwiseDistance(x1, x2, this.p, this.eps, this.keepdim);
  }
}
