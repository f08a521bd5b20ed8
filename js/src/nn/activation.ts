// Activation layers: one line each, over the functions of the same name.
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";
import { bind, factory, placed, py, pyFloat, type Factory, type Init } from "./bind.js";
import { functional } from "./functional_lookup.js";
import { Module } from "./module.js";
import { Parameter } from "./parameter.js";

export interface InplaceOptions {
  /** Write the result over the input. */
  inplace?: boolean;
}

// PyTorch's spelling of a field: negativeSlope is negative_slope.
const snakeCase = (name: string) => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);

// "alpha=1.0, inplace=True"; a flag that is off is not shown.
function shown(fields: [name: string, value: unknown][]): string {
  const text = (name: string, value: unknown) =>
    typeof value === "number" && name !== "dim" ? pyFloat(value) : py(value);
  return fields
    .filter(([, value]) => value !== false)
    .map(([name, value]) => `${snakeCase(name)}=${text(name, value)}`)
    .join(", ");
}

/** A layer that is one function of its input and its fields. */
class Activation extends Module {
  readonly #call: ReturnType<typeof functional>;
  readonly #names: readonly string[];
  constructor(call: ReturnType<typeof functional>, fields: object) {
    super();
    this.#call = call;
    this.#names = Object.keys(fields);
    Object.assign(this, fields);
  }
  forward(input: Tensor): Tensor {
    const self = this as unknown as Record<string, unknown>;
    return this.#call(input, ...this.#names.map((name) => self[name]));
  }
  override extraRepr(): string {
    const self = this as unknown as Record<string, unknown>;
    return shown(this.#names.map((name) => [name, self[name]]));
  }
}

type ActivationClass<Required extends unknown[], Optional extends unknown[], Fields> = new (
  ...args: Init<Required, Optional, Partial<Fields>>
) => Activation & Fields;

/**
 * The class of a layer over nn.functional[name]: constructor and function take the `required`
 * fields, then those of `defaults`.
 */
function activation<
  Fields extends object,
  Optional extends unknown[],
  Required extends unknown[] = [],
>(
  name: string,
  defaults: Partial<Fields>,
  required: readonly (keyof Fields & string)[] = [],
): ActivationClass<Required, Optional, Fields> {
  const call = functional(name);
  class Layer extends Activation {
    constructor(...args: unknown[]) {
      const given = bind<Record<string, unknown>>(new.target.name, args, required, defaults);
      const names = [...required, ...Object.keys(defaults)];
      super(call, Object.fromEntries(names.map((field) => [field, given[field]])));
    }
  }
  return Layer as unknown as ActivationClass<Required, Optional, Fields>;
}

type Inplace = { inplace: boolean };
type Plain = [inplace: boolean];
const inplace = { inplace: false };

/** max(x, 0) */
export class ReLU extends activation<Inplace, Plain>("relu", inplace) {}
/** min(max(x, 0), 6) */
export class ReLU6 extends activation<Inplace, Plain>("relu6", inplace) {}
/** x · sigmoid(x) */
export class SiLU extends activation<Inplace, Plain>("silu", inplace) {}
/** Klambauer et al., "Self-normalizing neural networks" (2017). */
export class SELU extends activation<Inplace, Plain>("selu", inplace) {}
/** x · tanh(softplus(x)) */
export class Mish extends activation<Inplace, Plain>("mish", inplace) {}
/** x · relu6(x + 3) / 6 */
export class Hardswish extends activation<Inplace, Plain>("hardswish", inplace) {}
/** relu6(x + 3) / 6 */
export class Hardsigmoid extends activation<Inplace, Plain>("hardsigmoid", inplace) {}

/** 1 / (1 + exp(-x)) */
export class Sigmoid extends activation<object, []>("sigmoid", {}) {}
/** Hyperbolic tangent. */
export class Tanh extends activation<object, []>("tanh", {}) {}
/** x / (1 + |x|) */
export class Softsign extends activation<object, []>("softsign", {}) {}
/** x - tanh(x) */
export class Tanhshrink extends activation<object, []>("tanhshrink", {}) {}
/** log(sigmoid(x)) */
export class LogSigmoid extends activation<object, []>("logsigmoid", {}) {}

type Alpha = { alpha: number } & Inplace;
type AlphaFirst = [alpha: number, inplace: boolean];
/** x, or alpha · (exp(x) - 1) below 0. */
export class ELU extends activation<Alpha, AlphaFirst>("elu", { alpha: 1, ...inplace }) {}
/** max(x, 0) + min(alpha · (exp(x / alpha) - 1), 0) */
export class CELU extends activation<Alpha, AlphaFirst>("celu", { alpha: 1, ...inplace }) {}

/** x, or negativeSlope · x below 0. */
export class LeakyReLU extends activation<
  { negativeSlope: number } & Inplace,
  [negativeSlope: number, inplace: boolean]
>("leakyRelu", { negativeSlope: 0.01, ...inplace }) {}

/** log(1 + exp(beta · x)) / beta; x itself where beta · x > threshold. */
export class Softplus extends activation<
  { beta: number; threshold: number },
  [beta: number, threshold: number]
>("softplus", { beta: 1, threshold: 20 }) {}

/** x clamped to [minVal, maxVal]. */
export class Hardtanh extends activation<
  { minVal: number; maxVal: number } & Inplace,
  [minVal: number, maxVal: number, inplace: boolean]
>("hardtanh", { minVal: -1, maxVal: 1, ...inplace }) {}

/** x where x > threshold, else value. */
export class Threshold extends activation<
  { threshold: number; value: number } & Inplace,
  Plain,
  [threshold: number, value: number]
>("threshold", inplace, ["threshold", "value"]) {
  override extraRepr(): string {
    const flag = this.inplace ? ", inplace=True" : "";
    return `threshold=${py(this.threshold)}, value=${py(this.value)}${flag}`;
  }
}

const shrink = (name: string) =>
  activation<{ lambd: number }, [lambd: number]>(name, { lambd: 0.5 });

/** x moved towards 0 by lambd. */
export class Softshrink extends shrink("softshrink") {
  override extraRepr(): string {
    return py(this.lambd);
  }
}
/** x, or 0 where |x| ≤ lambd. */
export class Hardshrink extends shrink("hardshrink") {
  override extraRepr(): string {
    return py(this.lambd);
  }
}

const alongDim = (name: string) => activation<{ dim: number }, [dim: number]>(name, { dim: -1 });

/** exp(x) / sum of exp(x) along `dim` (default: the last). */
export class Softmax extends alongDim("softmax") {}
/** log(softmax(x)) along `dim` (default: the last). */
export class LogSoftmax extends alongDim("logSoftmax") {}
/** softmax(-x) along `dim` (default: the last). */
export class Softmin extends alongDim("softmin") {}
/** First half · sigmoid(second half) along `dim`. */
export class GLU extends alongDim("glu") {}

const softmax = functional("softmax");
/** Softmax over the channels of [N, C, H, W] or [C, H, W]. */
export class Softmax2d extends Module {
  forward(input: Tensor): Tensor {
    return softmax(input, -3);
  }
}

type Approximation = "none" | "tanh";
/** x · Φ(x), or its approximation by tanh. */
export class GELU extends activation<{ approximate: Approximation }, [approximate: Approximation]>(
  "gelu",
  { approximate: "none" },
) {
  override forward(input: Tensor): Tensor {
    return ops.gelu(input, { approximate: this.approximate });
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
export class RReLU extends activation<
  { lower: number; upper: number } & Inplace,
  [lower: number, upper: number, inplace: boolean]
>("rrelu", { lower: 1 / 8, upper: 1 / 3, ...inplace }) {
  override forward(input: Tensor): Tensor {
    return rrelu(input, this.lower, this.upper, this.training, this.inplace);
  }
}
