// Pooling layers.
import { ValueError } from "../errors.js";
import { checkTensor } from "../frame.js";
import { Tensor } from "../tensor.js";
import { bind, py, type Init } from "./bind.js";
import type { Size } from "./conv.js";
import { functional } from "./functional_lookup.js";
import { Module } from "./module.js";
import { Buffer } from "./parameter.js";

type Function = ReturnType<typeof functional>;
/** The pooled tensor and the places of the maxima in it. */
export type WithIndices = [output: Tensor, indices: Tensor];

const shown = (size: Size) => py(size);

export interface MaxPoolOptions {
  /** Default: the kernel's size. */
  stride?: Size | null;
  padding?: Size;
  dilation?: Size;
  /** Give also the places of the maxima. */
  returnIndices?: boolean;
  ceilMode?: boolean;
}

type MaxPoolInit = Init<
  [kernelSize: Size],
  [stride: Size | null, padding: Size, dilation: Size, returnIndices: boolean, ceilMode: boolean],
  MaxPoolOptions
>;

abstract class MaxPool extends Module<[Tensor], Tensor> {
  readonly kernelSize: Size;
  readonly stride: Size;
  readonly padding: Size;
  readonly dilation: Size;
  readonly returnIndices: boolean;
  readonly ceilMode: boolean;
  constructor(...args: MaxPoolInit) {
    super();
    const o = bind<Required<MaxPoolOptions> & { kernelSize: Size }>(
      new.target.name,
      args,
      ["kernelSize"],
      { stride: null, padding: 0, dilation: 1, returnIndices: false, ceilMode: false },
    );
    this.kernelSize = o.kernelSize;
    this.stride = o.stride ?? o.kernelSize;
    this.padding = o.padding;
    this.dilation = o.dilation;
    this.returnIndices = o.returnIndices;
    this.ceilMode = o.ceilMode;
  }
  // With returnIndices the result is a pair, which the type leaves to forward's caller.
  protected run(f: Function, input: Tensor): Tensor {
    const { kernelSize, stride, padding, dilation, ceilMode } = this;
    if (!this.returnIndices) return f(input, kernelSize, stride, padding, dilation, ceilMode);
    return f(input, kernelSize, stride, padding, dilation, ceilMode, true);
  }
  override extraRepr(): string {
    return (
      `kernel_size=${shown(this.kernelSize)}, stride=${shown(this.stride)}, ` +
      `padding=${shown(this.padding)}, dilation=${shown(this.dilation)}, ` +
      `ceil_mode=${py(this.ceilMode)}`
    );
  }
}

const maxPool1d = functional("maxPool1d");
/** Maxima of windows of [N, C, L]. */
export class MaxPool1d extends MaxPool {
  forward(input: Tensor): Tensor {
    return this.run(maxPool1d, input);
  }
}
const maxPool2d = functional("maxPool2d");
/** Maxima of windows of [N, C, H, W]. */
export class MaxPool2d extends MaxPool {
  forward(input: Tensor): Tensor {
    return this.run(maxPool2d, input);
  }
}
const maxPool3d = functional("maxPool3d");
/** Maxima of windows of [N, C, D, H, W]. */
export class MaxPool3d extends MaxPool {
  forward(input: Tensor): Tensor {
    return this.run(maxPool3d, input);
  }
}

export interface AvgPoolOptions {
  /** Default: the kernel's size. */
  stride?: Size | null;
  padding?: Size;
  ceilMode?: boolean;
  countIncludePad?: boolean;
  /** Divides by this instead of the window's size (2d and 3d). */
  divisorOverride?: number | null;
}

type AvgPoolInit = Init<
  [kernelSize: Size],
  [stride: Size | null, padding: Size, ceilMode: boolean, countIncludePad: boolean],
  AvgPoolOptions
>;

abstract class AvgPool extends Module {
  readonly kernelSize: Size;
  readonly stride: Size;
  readonly padding: Size;
  readonly ceilMode: boolean;
  readonly countIncludePad: boolean;
  readonly divisorOverride: number | null;
  constructor(...args: AvgPoolInit) {
    super();
    const o = bind<Required<AvgPoolOptions> & { kernelSize: Size }>(
      new.target.name,
      args,
      ["kernelSize"],
      { stride: null, padding: 0, ceilMode: false, countIncludePad: true, divisorOverride: null },
    );
    this.kernelSize = o.kernelSize;
    this.stride = o.stride ?? o.kernelSize;
    this.padding = o.padding;
    this.ceilMode = o.ceilMode;
    this.countIncludePad = o.countIncludePad;
    this.divisorOverride = o.divisorOverride;
  }
  protected run(f: Function, input: Tensor): Tensor {
    const { kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride } = this;
    if (divisorOverride === null) {
      return f(input, kernelSize, stride, padding, ceilMode, countIncludePad);
    }
    return f(input, kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride);
  }
  override extraRepr(): string {
    return (
      `kernel_size=${shown(this.kernelSize)}, stride=${shown(this.stride)}, ` +
      `padding=${shown(this.padding)}`
    );
  }
}

const avgPool1d = functional("avgPool1d");
/** Means of windows of [N, C, L]. */
export class AvgPool1d extends AvgPool {
  forward(input: Tensor): Tensor {
    return this.run(avgPool1d, input);
  }
}
const avgPool2d = functional("avgPool2d");
/** Means of windows of [N, C, H, W]. */
export class AvgPool2d extends AvgPool {
  forward(input: Tensor): Tensor {
    return this.run(avgPool2d, input);
  }
}
const avgPool3d = functional("avgPool3d");
/** Means of windows of [N, C, D, H, W]. */
export class AvgPool3d extends AvgPool {
  forward(input: Tensor): Tensor {
    return this.run(avgPool3d, input);
  }
}

/** One size for all dims, or one per dim; null keeps a dim's size. */
export type AdaptiveSize = number | null | readonly (number | null)[];

// Replaces null by the input's sizes.
function resolve(op: string, size: AdaptiveSize, rank: number, input: Tensor): number[] {
  checkTensor(input, op, "input");
  const sizes = input.shape.slice(-rank);
  return sizes.map(
    (n, d) => (Array.isArray(size) ? (size[d] as number | null) : size) ?? n,
  ) as number[];
}

abstract class AdaptiveAvgPool extends Module {
  constructor(readonly outputSize: AdaptiveSize) {
    super();
  }
  protected run(f: Function, rank: number, input: Tensor): Tensor {
    return f(input, resolve(this.constructor.name, this.outputSize, rank, input));
  }
  override extraRepr(): string {
    return `output_size=${py(this.outputSize)}`;
  }
}

const adaptiveAvgPool1d = functional("adaptiveAvgPool1d");
/** [N, C, L] → [N, C, outputSize] by means. */
export class AdaptiveAvgPool1d extends AdaptiveAvgPool {
  forward(input: Tensor): Tensor {
    return this.run(adaptiveAvgPool1d, 1, input);
  }
}
const adaptiveAvgPool2d = functional("adaptiveAvgPool2d");
/** [N, C, H, W] → [N, C, ...outputSize] by means. */
export class AdaptiveAvgPool2d extends AdaptiveAvgPool {
  forward(input: Tensor): Tensor {
    return this.run(adaptiveAvgPool2d, 2, input);
  }
}
const adaptiveAvgPool3d = functional("adaptiveAvgPool3d");
/** [N, C, D, H, W] → [N, C, ...outputSize] by means. */
export class AdaptiveAvgPool3d extends AdaptiveAvgPool {
  forward(input: Tensor): Tensor {
    return this.run(adaptiveAvgPool3d, 3, input);
  }
}

type AdaptiveMaxInit = Init<
  [outputSize: AdaptiveSize],
  [returnIndices: boolean],
  { returnIndices?: boolean }
>;

abstract class AdaptiveMaxPool extends Module {
  readonly outputSize: AdaptiveSize;
  readonly returnIndices: boolean;
  constructor(...args: AdaptiveMaxInit) {
    super();
    const o = bind<{ outputSize: AdaptiveSize; returnIndices: boolean }>(
      new.target.name,
      args,
      ["outputSize"],
      { returnIndices: false },
    );
    this.outputSize = o.outputSize;
    this.returnIndices = o.returnIndices;
  }
  protected run(f: Function, rank: number, input: Tensor): Tensor {
    const size = resolve(this.constructor.name, this.outputSize, rank, input);
    if (this.returnIndices) return f(input, size, true);
    const result = f(input, size) as Tensor | Iterable<Tensor>;
    return result instanceof Tensor ? result : [...result][0]!;
  }
  override extraRepr(): string {
    return `output_size=${py(this.outputSize)}`;
  }
}

const adaptiveMaxPool1d = functional("adaptiveMaxPool1d");
/** [N, C, L] → [N, C, outputSize] by maxima. */
export class AdaptiveMaxPool1d extends AdaptiveMaxPool {
  forward(input: Tensor): Tensor {
    return this.run(adaptiveMaxPool1d, 1, input);
  }
}
const adaptiveMaxPool2d = functional("adaptiveMaxPool2d");
/** [N, C, H, W] → [N, C, ...outputSize] by maxima. */
export class AdaptiveMaxPool2d extends AdaptiveMaxPool {
  forward(input: Tensor): Tensor {
    return this.run(adaptiveMaxPool2d, 2, input);
  }
}
const adaptiveMaxPool3d = functional("adaptiveMaxPool3d");
/** [N, C, D, H, W] → [N, C, ...outputSize] by maxima. */
export class AdaptiveMaxPool3d extends AdaptiveMaxPool {
  forward(input: Tensor): Tensor {
    return this.run(adaptiveMaxPool3d, 3, input);
  }
}

type LPPoolInit = Init<
  [normType: number, kernelSize: Size],
  [stride: Size | null, ceilMode: boolean],
  { stride?: Size | null; ceilMode?: boolean }
>;

abstract class LPPool extends Module {
  readonly normType: number;
  readonly kernelSize: Size;
  readonly stride: Size | null;
  readonly ceilMode: boolean;
  constructor(...args: LPPoolInit) {
    super();
    const o = bind<{ normType: number; kernelSize: Size; stride: Size | null; ceilMode: boolean }>(
      new.target.name,
      args,
      ["normType", "kernelSize"],
      { stride: null, ceilMode: false },
    );
    this.normType = o.normType;
    this.kernelSize = o.kernelSize;
    this.stride = o.stride;
    this.ceilMode = o.ceilMode;
  }
  protected run(f: Function, input: Tensor): Tensor {
    return f(input, this.normType, this.kernelSize, this.stride, this.ceilMode);
  }
  override extraRepr(): string {
    return (
      `norm_type=${py(this.normType)}, kernel_size=${py(this.kernelSize)}, ` +
      `stride=${py(this.stride)}, ceil_mode=${py(this.ceilMode)}`
    );
  }
}

const lpPool1d = functional("lpPool1d");
/** Power means of windows of [N, C, L]. */
export class LPPool1d extends LPPool {
  forward(input: Tensor): Tensor {
    return this.run(lpPool1d, input);
  }
}
const lpPool2d = functional("lpPool2d");
/** Power means of windows of [N, C, H, W]. */
export class LPPool2d extends LPPool {
  forward(input: Tensor): Tensor {
    return this.run(lpPool2d, input);
  }
}
const lpPool3d = functional("lpPool3d");
/** Power means of windows of [N, C, D, H, W]. */
export class LPPool3d extends LPPool {
  forward(input: Tensor): Tensor {
    return this.run(lpPool3d, input);
  }
}

export interface FractionalMaxPoolOptions {
  outputSize?: Size | null;
  outputRatio?: number | readonly number[] | null;
  returnIndices?: boolean;
  /** The random places of the windows, in (0, 1). */
  _randomSamples?: Tensor | null;
}

abstract class FractionalMaxPool extends Module {
  readonly kernelSize: Size;
  readonly outputSize: Size | null;
  readonly outputRatio: number | readonly number[] | null;
  readonly returnIndices: boolean;
  _randomSamples: Buffer | null;
  constructor(...args: Init<[kernelSize: Size], [], FractionalMaxPoolOptions>) {
    super();
    const o = bind<Required<FractionalMaxPoolOptions> & { kernelSize: Size }>(
      new.target.name,
      args,
      ["kernelSize"],
      { outputSize: null, outputRatio: null, returnIndices: false, _randomSamples: null },
    );
    if ((o.outputSize === null) === (o.outputRatio === null)) {
      throw new ValueError(`${new.target.name}: expected either outputSize or outputRatio`);
    }
    this.kernelSize = o.kernelSize;
    this.outputSize = o.outputSize;
    this.outputRatio = o.outputRatio;
    this.returnIndices = o.returnIndices;
    this._randomSamples = o._randomSamples ? new Buffer(o._randomSamples) : null;
  }
  override get _stateNames(): Readonly<Record<string, string>> {
    return { _randomSamples: "_random_samples" };
  }
  protected run(f: Function, input: Tensor): Tensor {
    const { outputSize, outputRatio, returnIndices, _randomSamples } = this;
    return f(input, this.kernelSize, { outputSize, outputRatio, returnIndices, _randomSamples });
  }
}

const fractionalMaxPool2d = functional("fractionalMaxPool2d");
/** Graham, "Fractional max-pooling" (2014), of [N, C, H, W]. */
export class FractionalMaxPool2d extends FractionalMaxPool {
  forward(input: Tensor): Tensor {
    return this.run(fractionalMaxPool2d, input);
  }
}
const fractionalMaxPool3d = functional("fractionalMaxPool3d");
/** Graham, "Fractional max-pooling" (2014), of [N, C, D, H, W]. */
export class FractionalMaxPool3d extends FractionalMaxPool {
  forward(input: Tensor): Tensor {
    return this.run(fractionalMaxPool3d, input);
  }
}
