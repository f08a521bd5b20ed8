// Loss layers: thin modules over the functions of the same name.
import type { Tensor } from "../tensor.js";
import { bind, type Init } from "./bind.js";
import { functional } from "./functional_lookup.js";
import { Module } from "./module.js";
import { Buffer } from "./parameter.js";

type Function = ReturnType<typeof functional>;

/** How a loss sums up over the batch. */
export type Reduction = "none" | "mean" | "sum";
export interface LossOptions {
  reduction?: Reduction;
}
export interface WeightedLossOptions extends LossOptions {
  weight?: Tensor | null;
}

type Pair = [input: Tensor, target: Tensor];

/** A loss whose named options go to its function as they are. */
abstract class Loss<Args extends unknown[] = Pair> extends Module<Args, Tensor> {
  readonly reduction: Reduction;
  private readonly options: object;
  constructor(args: readonly unknown[], defaults: object) {
    super();
    const o = bind<Required<LossOptions>>(this.constructor.name, args, [], defaults);
    this.reduction = o.reduction;
    this.options = o;
  }
  protected run(f: Function, ...args: readonly unknown[]): Tensor {
    return f(...args, this.options);
  }
}

/** A loss with a weight per class or element, which is a buffer. */
abstract class WeightedLoss<Args extends unknown[] = Pair> extends Module<Args, Tensor> {
  readonly reduction: Reduction;
  weight: Buffer | null;
  private readonly options: object;
  constructor(args: readonly unknown[], defaults: object) {
    super();
    const { weight, ...rest } = bind<Required<WeightedLossOptions>>(
      this.constructor.name,
      args,
      [],
      { weight: null, ...defaults },
    );
    this.reduction = rest.reduction;
    this.options = rest;
    this.weight = weight ? new Buffer(weight) : null;
  }
  protected run(f: Function, ...args: readonly unknown[]): Tensor {
    return f(...args, { ...this.options, weight: this.weight });
  }
}

type ReductionInit = Init<[], [], LossOptions>;
type WeightInit<Options extends WeightedLossOptions = WeightedLossOptions> = Init<
  [],
  [weight: Tensor | null],
  Options
>;
const mean = { reduction: "mean" };

const l1Loss = functional("l1Loss");
/** |input - target| */
export class L1Loss extends Loss {
  constructor(...args: ReductionInit) {
    super(args, mean);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return this.run(l1Loss, input, target);
  }
}

const mseLoss = functional("mseLoss");
/** (input - target)² */
export class MSELoss extends Loss {
  constructor(...args: ReductionInit) {
    super(args, mean);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return this.run(mseLoss, input, target);
  }
}

export interface CrossEntropyLossOptions extends WeightedLossOptions {
  /** Targets of this value do not count. */
  ignoreIndex?: number;
  labelSmoothing?: number;
}
const crossEntropy = functional("crossEntropy");
/** Cross entropy of logits [N, C, ...] with class indices [N, ...] or probabilities. */
export class CrossEntropyLoss extends WeightedLoss {
  constructor(...args: WeightInit<CrossEntropyLossOptions>) {
    super(args, { ignoreIndex: -100, reduction: "mean", labelSmoothing: 0 });
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return this.run(crossEntropy, input, target);
  }
}

export interface NLLLossOptions extends WeightedLossOptions {
  ignoreIndex?: number;
}
const nllLoss = functional("nllLoss");
/** Negative log likelihood of log-probabilities [N, C, ...] and class indices [N, ...]. */
export class NLLLoss extends WeightedLoss {
  constructor(...args: WeightInit<NLLLossOptions>) {
    super(args, { ignoreIndex: -100, reduction: "mean" });
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return this.run(nllLoss, input, target);
  }
}

const binaryCrossEntropy = functional("binaryCrossEntropy");
/** Binary cross entropy of probabilities. */
export class BCELoss extends WeightedLoss {
  constructor(...args: WeightInit) {
    super(args, mean);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return this.run(binaryCrossEntropy, input, target);
  }
}

export interface BCEWithLogitsLossOptions extends WeightedLossOptions {
  posWeight?: Tensor | null;
}
const binaryCrossEntropyWithLogits = functional("binaryCrossEntropyWithLogits");
/** Binary cross entropy of logits. */
export class BCEWithLogitsLoss extends Module<Pair, Tensor> {
  readonly reduction: Reduction;
  weight: Buffer | null;
  posWeight: Buffer | null;
  constructor(...args: WeightInit<BCEWithLogitsLossOptions>) {
    super();
    const defaults = { weight: null, reduction: "mean", posWeight: null };
    const o = bind<Required<BCEWithLogitsLossOptions>>("BCEWithLogitsLoss", args, [], defaults);
    this.reduction = o.reduction;
    this.weight = o.weight ? new Buffer(o.weight) : null;
    this.posWeight = o.posWeight ? new Buffer(o.posWeight) : null;
  }
  override get _stateNames(): Readonly<Record<string, string>> {
    return { posWeight: "pos_weight" };
  }
  forward(input: Tensor, target: Tensor): Tensor {
    const { weight, posWeight, reduction } = this;
    return binaryCrossEntropyWithLogits(input, target, { weight, posWeight, reduction });
  }
}

const smoothL1Loss = functional("smoothL1Loss");
/** Squared below `beta`, linear above. */
export class SmoothL1Loss extends Loss {
  constructor(...args: Init<[], [], LossOptions & { beta?: number }>) {
    super(args, { reduction: "mean", beta: 1 });
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return this.run(smoothL1Loss, input, target);
  }
}

const huberLoss = functional("huberLoss");
/** Half the square below `delta`, linear above. */
export class HuberLoss extends Loss {
  constructor(
    ...args: Init<[], [reduction: Reduction, delta: number], LossOptions & { delta?: number }>
  ) {
    super(args, { reduction: "mean", delta: 1 });
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return this.run(huberLoss, input, target);
  }
}

const klDiv = functional("klDiv");
/** Kullback-Leibler divergence of log-probabilities from probabilities (or their logarithms). */
export class KLDivLoss extends Module<Pair, Tensor> {
  readonly reduction: Reduction | "batchmean";
  readonly logTarget: boolean;
  constructor(...args: Init<[], [], { reduction?: Reduction | "batchmean"; logTarget?: boolean }>) {
    super();
    const o = bind<{ reduction: Reduction | "batchmean"; logTarget: boolean }>(
      "KLDivLoss",
      args,
      [],
      { reduction: "mean", logTarget: false },
    );
    this.reduction = o.reduction;
    this.logTarget = o.logTarget;
  }
  forward(input: Tensor, target: Tensor): Tensor {
    const { reduction, logTarget } = this;
    return klDiv(input, target, { reduction, logTarget });
  }
}

const poissonNllLoss = functional("poissonNllLoss");
/** Negative log likelihood of a Poisson distribution. */
export class PoissonNLLLoss extends Loss {
  constructor(
    ...args: Init<
      [],
      [logInput: boolean, full: boolean],
      LossOptions & { logInput?: boolean; full?: boolean; eps?: number }
    >
  ) {
    super(args, { logInput: true, full: false, eps: 1e-8, reduction: "mean" });
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return this.run(poissonNllLoss, input, target);
  }
}

const gaussianNllLoss = functional("gaussianNllLoss");
/** Negative log likelihood of a normal distribution. */
export class GaussianNLLLoss extends Loss<[input: Tensor, target: Tensor, variance: Tensor]> {
  constructor(...args: Init<[], [], LossOptions & { full?: boolean; eps?: number }>) {
    super(args, { full: false, eps: 1e-6, reduction: "mean" });
  }
  forward(input: Tensor, target: Tensor, variance: Tensor): Tensor {
    return this.run(gaussianNllLoss, input, target, variance);
  }
}

type MarginInit = Init<[], [margin: number], LossOptions & { margin?: number }>;
type Triple = [input1: Tensor, input2: Tensor, target: Tensor];

const hingeEmbeddingLoss = functional("hingeEmbeddingLoss");
/** Distances of similar (1) and dissimilar (-1) pairs. */
export class HingeEmbeddingLoss extends Loss {
  constructor(...args: MarginInit) {
    super(args, { margin: 1, reduction: "mean" });
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return this.run(hingeEmbeddingLoss, input, target);
  }
}

const cosineEmbeddingLoss = functional("cosineEmbeddingLoss");
/** Cosine distance of similar (1) and dissimilar (-1) pairs. */
export class CosineEmbeddingLoss extends Loss<Triple> {
  constructor(...args: MarginInit) {
    super(args, { margin: 0, reduction: "mean" });
  }
  forward(input1: Tensor, input2: Tensor, target: Tensor): Tensor {
    return this.run(cosineEmbeddingLoss, input1, input2, target);
  }
}

const marginRankingLoss = functional("marginRankingLoss");
/** max(0, -target · (input1 - input2) + margin) */
export class MarginRankingLoss extends Loss<Triple> {
  constructor(...args: MarginInit) {
    super(args, { margin: 0, reduction: "mean" });
  }
  forward(input1: Tensor, input2: Tensor, target: Tensor): Tensor {
    return this.run(marginRankingLoss, input1, input2, target);
  }
}

const softMarginLoss = functional("softMarginLoss");
/** log(1 + exp(-target · input)) */
export class SoftMarginLoss extends Loss {
  constructor(...args: ReductionInit) {
    super(args, mean);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return this.run(softMarginLoss, input, target);
  }
}

const multilabelMarginLoss = functional("multilabelMarginLoss");
/** Hinge loss over several right classes per sample. */
export class MultiLabelMarginLoss extends Loss {
  constructor(...args: ReductionInit) {
    super(args, mean);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return this.run(multilabelMarginLoss, input, target);
  }
}

const multilabelSoftMarginLoss = functional("multilabelSoftMarginLoss");
/** Mean binary cross entropy over the classes of a sample. */
export class MultiLabelSoftMarginLoss extends WeightedLoss {
  constructor(...args: WeightInit) {
    super(args, mean);
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return this.run(multilabelSoftMarginLoss, input, target);
  }
}

export interface MultiMarginLossOptions extends WeightedLossOptions {
  p?: 1 | 2;
  margin?: number;
}
const multiMarginLoss = functional("multiMarginLoss");
/** Hinge loss of the right class against all others. */
export class MultiMarginLoss extends WeightedLoss {
  constructor(...args: Init<[], [], MultiMarginLossOptions>) {
    super(args, { p: 1, margin: 1, reduction: "mean" });
  }
  forward(input: Tensor, target: Tensor): Tensor {
    return this.run(multiMarginLoss, input, target);
  }
}

export interface TripletMarginLossOptions extends LossOptions {
  margin?: number;
  p?: number;
  eps?: number;
  swap?: boolean;
}
const tripletMarginLoss = functional("tripletMarginLoss");
/** The anchor's distance to the positive against that to the negative. */
export class TripletMarginLoss extends Loss<[anchor: Tensor, positive: Tensor, negative: Tensor]> {
  constructor(
    ...args: Init<[], [margin: number, p: number, eps: number], TripletMarginLossOptions>
  ) {
    super(args, { margin: 1, p: 2, eps: 1e-6, swap: false, reduction: "mean" });
  }
  forward(anchor: Tensor, positive: Tensor, negative: Tensor): Tensor {
    return this.run(tripletMarginLoss, anchor, positive, negative);
  }
}

type Lengths = Tensor | readonly number[];
const ctcLoss = functional("ctcLoss");
/** Connectionist temporal classification; Graves et al. (2006). */
export class CTCLoss extends Loss<
  [logProbs: Tensor, targets: Tensor, inputLengths: Lengths, targetLengths: Lengths]
> {
  constructor(
    ...args: Init<
      [],
      [blank: number, reduction: Reduction, zeroInfinity: boolean],
      LossOptions & { blank?: number; zeroInfinity?: boolean }
    >
  ) {
    super(args, { blank: 0, reduction: "mean", zeroInfinity: false });
  }
  forward(
    logProbs: Tensor,
    targets: Tensor,
    inputLengths: Lengths,
    targetLengths: Lengths,
  ): Tensor {
    return this.run(ctcLoss, logProbs, targets, inputLengths, targetLengths);
  }
}
