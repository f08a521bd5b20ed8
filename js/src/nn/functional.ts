// torch.nn.functional: the generated operators and those that need a shape of their own.
import { describe } from "../dtype.js";
import { TypeError_ } from "../errors.js";
import { isOptions } from "../frame.js";
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";

export * from "./functional.gen.js";
export * from "./functional_attention.js";
export * from "./functional_losses.js";
export * from "./functional_vision.js";
export { sigmoid, tanh } from "../ops.gen.js";

/** `inplace` writes the result into the input. */
export interface Inplace {
  inplace?: boolean | undefined;
}

type Numbers<P extends readonly string[]> = { [K in P[number]]?: number | undefined };
type Positions<P extends readonly string[]> = { [K in keyof P]: number | undefined };

/** An activation: its parameters by position or by name, `inplace` last. */
export interface Activation<P extends readonly string[]> {
  (input: Tensor, options?: Numbers<P> & Inplace): Tensor;
  (input: Tensor, ...args: Partial<[...Positions<P>, boolean]>): Tensor;
}

type Native = (input: Tensor, ...args: never[]) => Tensor;

/** Adds `inplace` to an operator and its in-place form. */
function activation<const P extends readonly string[]>(
  name: string,
  params: P,
  outOfPlace: Native,
  inPlace: Native,
): Activation<P> {
  return (input: Tensor, ...args: unknown[]): Tensor => {
    const last = args.at(-1);
    const named = isOptions(last) ? last : undefined;
    const given = named ? args.slice(0, -1) : args;
    if (given.length > params.length + 1) {
      throw new TypeError_(
        `${name}: expected at most ${params.length + 2} arguments, got ${given.length + 1}`,
      );
    }
    for (const key in named) {
      if (key !== "inplace" && !params.includes(key)) {
        const names = [...params, "inplace"].join(", ");
        throw new TypeError_(`${name}: unexpected argument "${key}"; expected one of ${names}`);
      }
    }
    const values = params.map((param, i) => given[i] ?? named?.[param]) as never[];
    const inplace = given[params.length] ?? named?.["inplace"] ?? false;
    if (typeof inplace !== "boolean") {
      throw new TypeError_(`${name}: expected a boolean for "inplace", got ${describe(inplace)}`);
    }
    return inplace ? inPlace(input, ...values) : outOfPlace(input, ...values);
  };
}

/** x where positive, else 0. */
export const relu = activation("relu", [], ops.relu, ops.relu_);
/** x clamped to [0, 6]. */
export const relu6 = activation("relu6", [], ops.relu6, ops.relu6_);
/** x where positive, else alpha (exp(x) - 1). */
export const elu = activation("elu", ["alpha"], ops.elu, ops.elu_);
/** Self-normalizing elu. */
export const selu = activation("selu", [], ops.selu, ops.selu_);
/** x where positive, else alpha (exp(x / alpha) - 1). */
export const celu = activation("celu", ["alpha"], ops.celu, ops.celu_);
/** x where positive, else negativeSlope x. */
export const leakyRelu = activation("leakyRelu", ["negativeSlope"], ops.leakyRelu, ops.leakyRelu_);
/** x clamped to [minVal, maxVal]. */
export const hardtanh = activation("hardtanh", ["minVal", "maxVal"], ops.hardtanh, ops.hardtanh_);
/** (x + 3) / 6 clamped to [0, 1]. */
export const hardsigmoid = activation("hardsigmoid", [], ops.hardsigmoid, ops.hardsigmoid_);
/** x hardsigmoid(x). */
export const hardswish = activation("hardswish", [], ops.hardswish, ops.hardswish_);
/** x sigmoid(x). */
export const silu = activation("silu", [], ops.silu, ops.silu_);
/** x tanh(softplus(x)). */
export const mish = activation("mish", [], ops.mish, ops.mish_);

const thresholded = activation("threshold", ["threshold", "value"], ops.threshold, ops.threshold_);
/** x where above threshold, else value. */
export function threshold(
  input: Tensor,
  threshold: number,
  value: number,
  inplace?: boolean | Inplace,
): Tensor;
export function threshold(
  input: Tensor,
  options: { threshold: number; value: number } & Inplace,
): Tensor;
export function threshold(input: Tensor, ...args: unknown[]): Tensor {
  return thresholded(input, ...(args as []));
}

/** 0 inside [-lambd, lambd], else x. */
export const hardshrink = ops.hardshrink;
/** log(1 + exp(beta x)) / beta, x itself where beta x > threshold. */
export const softplus = ops.softplus;
/** x / (1 + abs(x)). */
export const softsign = ops.softsign;
/** x - tanh(x). */
export const tanhshrink = ops.tanhshrink;
/** log(sigmoid(x)). */
export const logsigmoid = ops.logSigmoid;

export { conv1d, conv2d, conv3d, maxPool1d, maxPool2d, maxPool3d } from "./functional_conv.js";
export type {
  Convolution,
  ConvOptions,
  MaxPool,
  MaxPoolOptions,
  Pooled,
} from "./functional_conv.js";
export {
  adaptiveAvgPool1d,
  adaptiveAvgPool2d,
  adaptiveAvgPool3d,
  adaptiveMaxPool1d,
  adaptiveMaxPool2d,
  adaptiveMaxPool3d,
  fold,
  fractionalMaxPool2d,
  fractionalMaxPool3d,
  lpPool1d,
  lpPool2d,
  lpPool3d,
  unfold,
} from "./functional_pool.js";
export type {
  AdaptiveMaxPool,
  FractionalMaxPool,
  FractionalMaxPoolOptions,
  LPPool,
  LPPoolOptions,
  OutputSize,
} from "./functional_pool.js";
