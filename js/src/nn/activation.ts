// Activation layers.
import { NotImplementedError } from "../errors.js";
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";
import { bind, factory, placed, py, pyFloat, type Factory, type Init } from "./bind.js";
import { functional } from "./functional_lookup.js";
import { Module } from "./module.js";
import { Parameter } from "./parameter.js";

type Function = ReturnType<typeof functional>;
type Method = (...args: unknown[]) => Tensor;

export interface InplaceOptions {
  /** Write the result over the input. */
  inplace?: boolean;
}

/** Layers that can work in place. */
abstract class InplaceActivation extends Module {
  inplace = false;
  protected run(name: string, f: Function, input: Tensor, ...args: number[]): Tensor {
    if (!this.inplace) return f(input, ...args);
    const method = (input as unknown as Record<string, Method | undefined>)[`${name}_`];
    if (method) return method.apply(input, args);
    throw new NotImplementedError(`${name}: no in-place form`);
  }
  protected inplaceRepr(before = ""): string {
    const flag = this.inplace ? "inplace=True" : "";
    return [before, flag].filter((text) => text !== "").join(", ");
  }
  override extraRepr(): string {
    return this.inplaceRepr();
  }
}

type InplaceInit = Init<[], [inplace: boolean], InplaceOptions>;

/** Activations whose only option is `inplace`. */
abstract class PlainActivation extends InplaceActivation {
  constructor(...args: InplaceInit) {
    super();
    const { name } = this.constructor;
    this.inplace = bind<Required<InplaceOptions>>(name, args, [], { inplace: false }).inplace;
  }
}

const relu = functional("relu");
/** max(x, 0) */
export class ReLU extends PlainActivation {
  forward(input: Tensor): Tensor {
    return this.run("relu", relu, input);
  }
}

const relu6 = functional("relu6");
/** min(max(x, 0), 6) */
export class ReLU6 extends PlainActivation {
  forward(input: Tensor): Tensor {
    return this.run("relu6", relu6, input);
  }
}

const silu = functional("silu");
/** x · sigmoid(x) */
export class SiLU extends PlainActivation {
  forward(input: Tensor): Tensor {
    return this.run("silu", silu, input);
  }
}

const selu = functional("selu");
/** Klambauer et al., "Self-normalizing neural networks" (2017). */
export class SELU extends PlainActivation {
  forward(input: Tensor): Tensor {
    return this.run("selu", selu, input);
  }
}

const mish = functional("mish");
/** x · tanh(softplus(x)) */
export class Mish extends PlainActivation {
  forward(input: Tensor): Tensor {
    return this.run("mish", mish, input);
  }
}

const hardswish = functional("hardswish");
/** x · relu6(x + 3) / 6 */
export class Hardswish extends PlainActivation {
  forward(input: Tensor): Tensor {
    return this.run("hardswish", hardswish, input);
  }
}

const hardsigmoid = functional("hardsigmoid");
/** relu6(x + 3) / 6 */
export class Hardsigmoid extends PlainActivation {
  forward(input: Tensor): Tensor {
    return this.run("hardsigmoid", hardsigmoid, input);
  }
}

const sigmoid = functional("sigmoid");
/** 1 / (1 + exp(-x)) */
export class Sigmoid extends Module {
  forward(input: Tensor): Tensor {
    return sigmoid(input);
  }
}

const tanh = functional("tanh");
/** Hyperbolic tangent. */
export class Tanh extends Module {
  forward(input: Tensor): Tensor {
    return tanh(input);
  }
}

const softsign = functional("softsign");
/** x / (1 + |x|) */
export class Softsign extends Module {
  forward(input: Tensor): Tensor {
    return softsign(input);
  }
}

const tanhshrink = functional("tanhshrink");
/** x - tanh(x) */
export class Tanhshrink extends Module {
  forward(input: Tensor): Tensor {
    return tanhshrink(input);
  }
}

const logsigmoid = functional("logsigmoid");
/** log(sigmoid(x)) */
export class LogSigmoid extends Module {
  forward(input: Tensor): Tensor {
    return logsigmoid(input);
  }
}

const gelu = functional("gelu");
/** x · Φ(x), or its approximation by tanh. */
export class GELU extends Module {
  readonly approximate: "none" | "tanh";
  constructor(
    ...args: Init<[], [approximate: "none" | "tanh"], { approximate?: "none" | "tanh" }>
  ) {
    super();
    const o = bind<{ approximate: "none" | "tanh" }>("GELU", args, [], { approximate: "none" });
    this.approximate = o.approximate;
  }
  forward(input: Tensor): Tensor {
    return gelu(input, { approximate: this.approximate });
  }
  override extraRepr(): string {
    return `approximate=${py(this.approximate)}`;
  }
}

const leakyRelu = functional("leakyRelu");
/** x, or negativeSlope · x below 0. */
export class LeakyReLU extends InplaceActivation {
  readonly negativeSlope: number;
  constructor(
    ...args: Init<
      [],
      [negativeSlope: number, inplace: boolean],
      { negativeSlope?: number; inplace?: boolean }
    >
  ) {
    super();
    const defaults = { negativeSlope: 0.01, inplace: false };
    const o = bind<typeof defaults>("LeakyReLU", args, [], defaults);
    this.negativeSlope = o.negativeSlope;
    this.inplace = o.inplace;
  }
  forward(input: Tensor): Tensor {
    return this.run("leakyRelu", leakyRelu, input, this.negativeSlope);
  }
  override extraRepr(): string {
    return this.inplaceRepr(`negative_slope=${pyFloat(this.negativeSlope)}`);
  }
}

type AlphaInit = Init<[], [alpha: number, inplace: boolean], { alpha?: number; inplace?: boolean }>;

/** Activations with `alpha`. */
abstract class AlphaActivation extends InplaceActivation {
  readonly alpha: number;
  constructor(...args: AlphaInit) {
    super();
    const defaults = { alpha: 1, inplace: false };
    const o = bind<typeof defaults>(this.constructor.name, args, [], defaults);
    this.alpha = o.alpha;
    this.inplace = o.inplace;
  }
  override extraRepr(): string {
    return this.inplaceRepr(`alpha=${pyFloat(this.alpha)}`);
  }
}

const elu = functional("elu");
/** x, or alpha · (exp(x) - 1) below 0. */
export class ELU extends AlphaActivation {
  forward(input: Tensor): Tensor {
    return this.run("elu", elu, input, this.alpha);
  }
}

const celu = functional("celu");
/** max(x, 0) + min(alpha · (exp(x / alpha) - 1), 0) */
export class CELU extends AlphaActivation {
  forward(input: Tensor): Tensor {
    return this.run("celu", celu, input, this.alpha);
  }
}

const softplus = functional("softplus");
/** log(1 + exp(beta · x)) / beta; x itself where beta · x > threshold. */
export class Softplus extends Module {
  readonly beta: number;
  readonly threshold: number;
  constructor(
    ...args: Init<[], [beta: number, threshold: number], { beta?: number; threshold?: number }>
  ) {
    super();
    const defaults = { beta: 1, threshold: 20 };
    const o = bind<typeof defaults>("Softplus", args, [], defaults);
    this.beta = o.beta;
    this.threshold = o.threshold;
  }
  forward(input: Tensor): Tensor {
    return softplus(input, this.beta, this.threshold);
  }
  override extraRepr(): string {
    return `beta=${pyFloat(this.beta)}, threshold=${pyFloat(this.threshold)}`;
  }
}

const hardtanh = functional("hardtanh");
/** x clamped to [minVal, maxVal]. */
export class Hardtanh extends InplaceActivation {
  readonly minVal: number;
  readonly maxVal: number;
  constructor(
    ...args: Init<
      [],
      [minVal: number, maxVal: number, inplace: boolean],
      { minVal?: number; maxVal?: number; inplace?: boolean }
    >
  ) {
    super();
    const defaults = { minVal: -1, maxVal: 1, inplace: false };
    const o = bind<typeof defaults>("Hardtanh", args, [], defaults);
    this.minVal = o.minVal;
    this.maxVal = o.maxVal;
    this.inplace = o.inplace;
  }
  forward(input: Tensor): Tensor {
    return this.run("hardtanh", hardtanh, input, this.minVal, this.maxVal);
  }
  override extraRepr(): string {
    return this.inplaceRepr(`min_val=${pyFloat(this.minVal)}, max_val=${pyFloat(this.maxVal)}`);
  }
}

const threshold = functional("threshold");
/** x where x > threshold, else value. */
export class Threshold extends InplaceActivation {
  readonly threshold: number;
  readonly value: number;
  constructor(
    ...args: Init<[threshold: number, value: number], [inplace: boolean], InplaceOptions>
  ) {
    super();
    const o = bind<{ threshold: number; value: number; inplace: boolean }>(
      "Threshold",
      args,
      ["threshold", "value"],
      { inplace: false },
    );
    this.threshold = o.threshold;
    this.value = o.value;
    this.inplace = o.inplace;
  }
  forward(input: Tensor): Tensor {
    return this.run("threshold", threshold, input, this.threshold, this.value);
  }
  override extraRepr(): string {
    return this.inplaceRepr(`threshold=${py(this.threshold)}, value=${py(this.value)}`);
  }
}

type LambdaInit = Init<[], [lambd: number], { lambd?: number }>;

/** Activations with `lambd`. */
abstract class Shrink extends Module {
  readonly lambd: number;
  constructor(...args: LambdaInit) {
    super();
    this.lambd = bind<{ lambd: number }>(this.constructor.name, args, [], { lambd: 0.5 }).lambd;
  }
  override extraRepr(): string {
    return py(this.lambd);
  }
}

const softshrink = functional("softshrink");
/** x moved towards 0 by lambd. */
export class Softshrink extends Shrink {
  forward(input: Tensor): Tensor {
    return softshrink(input, this.lambd);
  }
}

const hardshrink = functional("hardshrink");
/** x, or 0 where |x| ≤ lambd. */
export class Hardshrink extends Shrink {
  forward(input: Tensor): Tensor {
    return hardshrink(input, this.lambd);
  }
}

type DimInit = Init<[], [dim: number], { dim?: number }>;

/** Activations along one dim. */
abstract class AlongDim extends Module {
  readonly dim: number;
  constructor(fallback: number, args: readonly unknown[]) {
    super();
    this.dim = bind<{ dim: number }>(this.constructor.name, args, [], { dim: fallback }).dim;
  }
  override extraRepr(): string {
    return `dim=${this.dim}`;
  }
}

const softmax = functional("softmax");
/** exp(x) / sum of exp(x) along `dim` (default: the last). */
export class Softmax extends AlongDim {
  constructor(...args: DimInit) {
    super(-1, args);
  }
  forward(input: Tensor): Tensor {
    return softmax(input, this.dim);
  }
}

/** Softmax over the channels of [N, C, H, W] or [C, H, W]. */
export class Softmax2d extends Module {
  forward(input: Tensor): Tensor {
    return softmax(input, -3);
  }
}

const logSoftmax = functional("logSoftmax");
/** log(softmax(x)) along `dim` (default: the last). */
export class LogSoftmax extends AlongDim {
  constructor(...args: DimInit) {
    super(-1, args);
  }
  forward(input: Tensor): Tensor {
    return logSoftmax(input, this.dim);
  }
}

/** softmax(-x) along `dim` (default: the last). */
export class Softmin extends AlongDim {
  constructor(...args: DimInit) {
    super(-1, args);
  }
  forward(input: Tensor): Tensor {
    return softmax(input.neg(), this.dim);
  }
}

const glu = functional("glu");
/** First half · sigmoid(second half) along `dim`. */
export class GLU extends AlongDim {
  constructor(...args: DimInit) {
    super(-1, args);
  }
  forward(input: Tensor): Tensor {
    return glu(input, this.dim);
  }
}

const prelu = functional("prelu");
export interface PReLUOptions extends Factory {
  numParameters?: number;
  init?: number;
}
/** x, or weight · x below 0; one weight, or one per channel. */
export class PReLU extends Module {
  readonly numParameters: number;
  weight: Parameter;
  constructor(...args: Init<[], [numParameters: number, init: number], PReLUOptions>) {
    super();
    const defaults = { numParameters: 1, init: 0.25, ...factory };
    const o = bind<typeof defaults>("PReLU", args, [], defaults);
    this.numParameters = o.numParameters;
    this.weight = new Parameter(ops.full([o.numParameters], o.init, placed(o)));
  }
  forward(input: Tensor): Tensor {
    return prelu(input, this.weight);
  }
  override extraRepr(): string {
    return `num_parameters=${this.numParameters}`;
  }
}

const rrelu = functional("rrelu");
/** Leaky ReLU with a slope drawn from U(lower, upper) in training. */
export class RReLU extends Module {
  readonly lower: number;
  readonly upper: number;
  constructor(
    ...args: Init<
      [],
      [lower: number, upper: number, inplace: boolean],
      { lower?: number; upper?: number; inplace?: boolean }
    >
  ) {
    super();
    const defaults = { lower: 1 / 8, upper: 1 / 3, inplace: false };
    const o = bind<typeof defaults>("RReLU", args, [], defaults);
    if (o.inplace) throw new NotImplementedError("RReLU: no in-place form");
    this.lower = o.lower;
    this.upper = o.upper;
  }
  forward(input: Tensor): Tensor {
    return rrelu(input, this.lower, this.upper, this.training);
  }
  override extraRepr(): string {
    return `lower=${this.lower}, upper=${this.upper}`;
  }
}
