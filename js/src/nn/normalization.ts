// Normalisation layers.
import { int64 } from "../dtype.js";
import { noGrad } from "../autograd.js";
import { ShapeError, ValueError } from "../errors.js";
import { checkTensor, float, int } from "../frame.js";
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";
import { bind, factory, placed, py, pyFloat, tuple, type Factory, type Init } from "./bind.js";
import { functional } from "./functional_lookup.js";
import { Module } from "./module.js";
import { Buffer, Parameter } from "./parameter.js";

export interface RunningNormOptions extends Factory {
  eps?: number;
  /** Weight of the newest batch in the running values; null averages over all batches. */
  momentum?: number | null;
  affine?: boolean;
  trackRunningStats?: boolean;
}

type RunningNormInit = Init<
  [numFeatures: number],
  [eps: number, momentum: number | null, affine: boolean, trackRunningStats: boolean],
  RunningNormOptions
>;

const stateNames = {
  runningMean: "running_mean",
  runningVar: "running_var",
  numBatchesTracked: "num_batches_tracked",
};

/** Batch and instance normalisation: affine weights and running statistics per channel. */
abstract class RunningNorm extends Module {
  readonly numFeatures: number;
  readonly eps: number;
  readonly momentum: number | null;
  readonly affine: boolean;
  readonly trackRunningStats: boolean;
  weight: Parameter | null;
  bias: Parameter | null;
  runningMean: Buffer | null;
  runningVar: Buffer | null;
  numBatchesTracked: Buffer | null;

  constructor(name: string, on: boolean, args: readonly unknown[]) {
    super();
    const o = bind<Required<RunningNormOptions> & { numFeatures: number }>(
      name,
      args,
      ["numFeatures"],
      { eps: 1e-5, momentum: 0.1, affine: on, trackRunningStats: on, ...factory },
    );
    this.numFeatures = int(o.numFeatures, name, "numFeatures");
    const n = [this.numFeatures];
    this.eps = o.eps;
    this.momentum = o.momentum === null ? null : float(o.momentum, name, "momentum");
    this.affine = o.affine;
    this.trackRunningStats = o.trackRunningStats;
    this.weight = o.affine ? new Parameter(ops.ones(n, placed(o))) : null;
    this.bias = o.affine ? new Parameter(ops.zeros(n, placed(o))) : null;
    const track = o.trackRunningStats;
    this.runningMean = track ? new Buffer(ops.zeros(n, placed(o))) : null;
    this.runningVar = track ? new Buffer(ops.ones(n, placed(o))) : null;
    const device = o.device == null ? {} : { device: o.device };
    this.numBatchesTracked = track ? new Buffer(ops.zeros([], { dtype: int64, ...device })) : null;
  }
  override get _stateNames(): Readonly<Record<string, string>> {
    return stateNames;
  }
  resetRunningStats(): void {
    this.runningMean?.zero_();
    this.runningVar?.fill_(1);
    this.numBatchesTracked?.zero_();
  }
  resetParameters(): void {
    this.resetRunningStats();
    noGrad(() => {
      this.weight?.fill_(1);
      this.bias?.zero_();
    });
  }
  override extraRepr(): string {
    const momentum = this.momentum === null ? "None" : pyFloat(this.momentum);
    return (
      `${this.numFeatures}, eps=${pyFloat(this.eps)}, momentum=${momentum}, ` +
      `affine=${py(this.affine)}, track_running_stats=${py(this.trackRunningStats)}`
    );
  }
}

function checkRank(name: string, input: Tensor, ranks: readonly number[]): void {
  checkTensor(input, name, "input");
  const { ndim } = input;
  if (ranks.includes(ndim)) return;
  throw new ShapeError(
    `${name}: expected an input of ${ranks.join(" or ")} dims, got shape [${input.shape}]`,
  );
}

const batchNorm = functional("batchNorm");

/** Ioffe and Szegedy, "Batch normalization" (2015). */
abstract class BatchNorm extends RunningNorm {
  constructor(...args: RunningNormInit) {
    super(new.target.name, true, args);
  }
  protected run(input: Tensor, ranks: readonly number[]): Tensor {
    checkRank(this.constructor.name, input, ranks);
    const { runningMean, runningVar, weight, bias, eps, training } = this;
    let factor = this.momentum ?? 0;
    if (training && this.trackRunningStats && this.numBatchesTracked) {
      this.numBatchesTracked.add_(1);
      if (this.momentum === null) factor = 1 / Number(this.numBatchesTracked.item());
    }
    const ownStatistics = training || (runningMean === null && runningVar === null);
    const tracked = !training || this.trackRunningStats;
    return batchNorm(
      input,
      tracked ? runningMean : null,
      tracked ? runningVar : null,
      weight,
      bias,
      ownStatistics,
      factor,
      eps,
    );
  }
}
/** Batch normalisation of [N, C] or [N, C, L]. */
export class BatchNorm1d extends BatchNorm {
  forward(input: Tensor): Tensor {
    return this.run(input, [2, 3]);
  }
}
/** Batch normalisation of [N, C, H, W]. */
export class BatchNorm2d extends BatchNorm {
  forward(input: Tensor): Tensor {
    return this.run(input, [4]);
  }
}
/** Batch normalisation of [N, C, D, H, W]. */
export class BatchNorm3d extends BatchNorm {
  forward(input: Tensor): Tensor {
    return this.run(input, [5]);
  }
}

const instanceNorm = functional("instanceNorm");

/** Ulyanov et al., "Instance normalization" (2016). */
abstract class InstanceNorm extends RunningNorm {
  constructor(...args: RunningNormInit) {
    super(new.target.name, false, args);
  }
  protected run(input: Tensor, rank: number): Tensor {
    checkRank(this.constructor.name, input, [rank + 1, rank + 2]);
    if (input.ndim === rank + 1) return this.normalize(input.unsqueeze(0)).select(0, 0);
    return this.normalize(input);
  }
  private normalize(input: Tensor): Tensor {
    const own = this.training || !this.trackRunningStats;
    const { runningMean, runningVar, weight, bias, momentum, eps } = this;
    return instanceNorm(input, runningMean, runningVar, weight, bias, own, momentum ?? 0, eps);
  }
}
/** Instance normalisation of [N, C, L] or [C, L]. */
export class InstanceNorm1d extends InstanceNorm {
  forward(input: Tensor): Tensor {
    return this.run(input, 1);
  }
}
/** Instance normalisation of [N, C, H, W] or [C, H, W]. */
export class InstanceNorm2d extends InstanceNorm {
  forward(input: Tensor): Tensor {
    return this.run(input, 2);
  }
}
/** Instance normalisation of [N, C, D, H, W] or [C, D, H, W]. */
export class InstanceNorm3d extends InstanceNorm {
  forward(input: Tensor): Tensor {
    return this.run(input, 3);
  }
}

const layerNorm = functional("layerNorm");
type Shape = number | readonly number[];

export interface LayerNormOptions extends Factory {
  eps?: number;
  elementwiseAffine?: boolean;
  bias?: boolean;
}
/** Normalises over the last dims, of shape `normalizedShape`; Ba et al. (2016). */
export class LayerNorm extends Module {
  readonly normalizedShape: number[];
  readonly eps: number;
  readonly elementwiseAffine: boolean;
  weight: Parameter | null;
  bias: Parameter | null;
  constructor(
    ...args: Init<
      [normalizedShape: Shape],
      [eps: number, elementwiseAffine: boolean, bias: boolean],
      LayerNormOptions
    >
  ) {
    super();
    const o = bind<Required<LayerNormOptions> & { normalizedShape: Shape }>(
      "LayerNorm",
      args,
      ["normalizedShape"],
      { eps: 1e-5, elementwiseAffine: true, bias: true, ...factory },
    );
    this.normalizedShape = tuple(o.normalizedShape, 1, "LayerNorm", "normalizedShape");
    this.eps = o.eps;
    this.elementwiseAffine = o.elementwiseAffine;
    const affine = o.elementwiseAffine;
    this.weight = affine ? new Parameter(ops.ones(this.normalizedShape, placed(o))) : null;
    this.bias = affine && o.bias ? new Parameter(ops.zeros(this.normalizedShape, placed(o))) : null;
  }
  forward(input: Tensor): Tensor {
    return layerNorm(input, this.normalizedShape, this.weight, this.bias, this.eps);
  }
  override extraRepr(): string {
    return (
      `${py(this.normalizedShape)}, eps=${pyFloat(this.eps)}, ` +
      `elementwise_affine=${py(this.elementwiseAffine)}`
    );
  }
}

const rmsNorm = functional("rmsNorm");
export interface RMSNormOptions extends Factory {
  /** Default: the machine epsilon of the input's dtype. */
  eps?: number | null;
  elementwiseAffine?: boolean;
}
/** Divides by the root of the mean square over the last dims; Zhang and Sennrich (2019). */
export class RMSNorm extends Module {
  readonly normalizedShape: number[];
  readonly eps: number | null;
  readonly elementwiseAffine: boolean;
  weight: Parameter | null;
  constructor(
    ...args: Init<
      [normalizedShape: Shape],
      [eps: number | null, elementwiseAffine: boolean],
      RMSNormOptions
    >
  ) {
    super();
    const o = bind<Required<RMSNormOptions> & { normalizedShape: Shape }>(
      "RMSNorm",
      args,
      ["normalizedShape"],
      { eps: null, elementwiseAffine: true, ...factory },
    );
    this.normalizedShape = tuple(o.normalizedShape, 1, "RMSNorm", "normalizedShape");
    this.eps = o.eps;
    this.elementwiseAffine = o.elementwiseAffine;
    this.weight = o.elementwiseAffine
      ? new Parameter(ops.ones(this.normalizedShape, placed(o)))
      : null;
  }
  forward(input: Tensor): Tensor {
    return rmsNorm(input, this.normalizedShape, this.weight, this.eps);
  }
  override extraRepr(): string {
    const eps = this.eps === null ? "None" : pyFloat(this.eps);
    return (
      `${py(this.normalizedShape)}, eps=${eps}, ` +
      `elementwise_affine=${py(this.elementwiseAffine)}`
    );
  }
}

const groupNorm = functional("groupNorm");
export interface GroupNormOptions extends Factory {
  eps?: number;
  affine?: boolean;
}
/** Normalises over groups of channels; Wu and He (2018). */
export class GroupNorm extends Module {
  readonly numGroups: number;
  readonly numChannels: number;
  readonly eps: number;
  readonly affine: boolean;
  weight: Parameter | null;
  bias: Parameter | null;
  constructor(
    ...args: Init<
      [numGroups: number, numChannels: number],
      [eps: number, affine: boolean],
      GroupNormOptions
    >
  ) {
    super();
    const o = bind<Required<GroupNormOptions> & { numGroups: number; numChannels: number }>(
      "GroupNorm",
      args,
      ["numGroups", "numChannels"],
      { eps: 1e-5, affine: true, ...factory },
    );
    const numGroups = int(o.numGroups, "GroupNorm", "numGroups");
    const numChannels = int(o.numChannels, "GroupNorm", "numChannels");
    if (numGroups <= 0 || numChannels % numGroups !== 0) {
      throw new ValueError(
        `GroupNorm: expected numChannels divisible by numGroups ${numGroups}, got ${numChannels}`,
      );
    }
    this.numGroups = numGroups;
    this.numChannels = numChannels;
    this.eps = o.eps;
    this.affine = o.affine;
    this.weight = o.affine ? new Parameter(ops.ones([numChannels], placed(o))) : null;
    this.bias = o.affine ? new Parameter(ops.zeros([numChannels], placed(o))) : null;
  }
  forward(input: Tensor): Tensor {
    return groupNorm(input, this.numGroups, this.weight, this.bias, this.eps);
  }
  override extraRepr(): string {
    const { numGroups, numChannels, eps, affine } = this;
    return `${numGroups}, ${numChannels}, eps=${pyFloat(eps)}, affine=${py(affine)}`;
  }
}

const localResponseNorm = functional("localResponseNorm");
/** Krizhevsky et al. (2012): divides by a norm over neighbouring channels. */
export class LocalResponseNorm extends Module {
  readonly size: number;
  readonly alpha: number;
  readonly beta: number;
  readonly k: number;
  constructor(
    ...args: Init<
      [size: number],
      [alpha: number, beta: number, k: number],
      { alpha?: number; beta?: number; k?: number }
    >
  ) {
    super();
    const o = bind<{ size: number; alpha: number; beta: number; k: number }>(
      "LocalResponseNorm",
      args,
      ["size"],
      { alpha: 1e-4, beta: 0.75, k: 1 },
    );
    this.size = o.size;
    this.alpha = o.alpha;
    this.beta = o.beta;
    this.k = o.k;
  }
  forward(input: Tensor): Tensor {
    return localResponseNorm(input, this.size, this.alpha, this.beta, this.k);
  }
  override extraRepr(): string {
    const { size, alpha, beta, k } = this;
    return `${size}, alpha=${py(alpha)}, beta=${py(beta)}, k=${pyFloat(k)}`;
  }
}
