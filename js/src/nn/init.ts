// torch.nn.init: fills parameters in place, with PyTorch's numbers for a given seed.
import { noGrad } from "../autograd.js";
import { describe } from "../dtype.js";
import { NotImplementedError, ShapeError, TypeError_, ValueError } from "../errors.js";
import { checkTensor, float } from "../frame.js";
import * as torch from "../torch.gen.js";
import type { Tensor } from "../tensor.js";

/** Functions whose gain calculateGain knows. */
export type Nonlinearity =
  | "linear"
  | "conv1d"
  | "conv2d"
  | "conv3d"
  | "convTranspose1d"
  | "convTranspose2d"
  | "convTranspose3d"
  | "sigmoid"
  | "tanh"
  | "relu"
  | "leakyRelu"
  | "selu";

export type FanMode = "fanIn" | "fanOut";

/** A random number generator, as the in-place draws take it. */
export type GeneratorOption = { generator?: unknown };

type Draw = (a: number, b: number, options?: GeneratorOption) => Tensor;

function draw(op: "uniform_" | "normal_", t: Tensor, a: number, b: number): Tensor {
  checkTensor(t, op, "tensor");
  const method = (t as unknown as Record<string, Draw | undefined>)[op];
  if (!method) throw new NotImplementedError(`init.${op}: Tensor.${op} is not implemented`);
  noGrad(() => method.call(t, a, b));
  return t;
}

/** Numbers of U(a, b). */
export function uniform_(tensor: Tensor, a = 0, b = 1): Tensor {
  return draw("uniform_", tensor, a, b);
}

/** Numbers of N(mean, std²). */
export function normal_(tensor: Tensor, mean = 0, std = 1): Tensor {
  return draw("normal_", tensor, mean, std);
}

export function constant_(tensor: Tensor, value: number): Tensor {
  checkTensor(tensor, "constant_", "tensor");
  return noGrad(() => tensor.fill_(value));
}
export function ones_(tensor: Tensor): Tensor {
  return constant_(tensor, 1);
}
export function zeros_(tensor: Tensor): Tensor {
  return constant_(tensor, 0);
}

/** The identity matrix. */
export function eye_(tensor: Tensor): Tensor {
  checkTensor(tensor, "eye_", "tensor");
  const { shape } = tensor;
  if (shape.length !== 2) throw new ShapeError(`eye_: expected a matrix, got shape [${shape}]`);
  noGrad(() => {
    tensor.fill_(0);
    tensor.diagonal().fill_(1);
  });
  return tensor;
}

/** Normal numbers cut to [a, b], by inversion of the distribution function. */
export function truncNormal_(tensor: Tensor, mean = 0, std = 1, a = -2, b = 2): Tensor {
  const op = "truncNormal_";
  checkTensor(tensor, op, "tensor");
  const [m, s] = [float(mean, op, "mean"), float(std, op, "std")];
  const [least, most] = [float(a, op, "a"), float(b, op, "b")];
  const erfinv = (tensor as unknown as { erfinv_?: () => Tensor }).erfinv_;
  if (!erfinv) throw new NotImplementedError("init.truncNormal_: erfinv_ is not implemented");
  const low = normalCdf((least - m) / s);
  const high = normalCdf((most - m) / s);
  uniform_(tensor, 2 * low - 1, 2 * high - 1);
  noGrad(() => {
    erfinv.call(tensor);
    tensor.mul_(s * Math.SQRT2).add_(m);
    (tensor as unknown as { clamp_(lo: number, hi: number): Tensor }).clamp_(least, most);
  });
  return tensor;
}

function normalCdf(x: number): number {
  return (1 + Number(torch.erf(torch.full([], x / Math.SQRT2, { dtype: null })).item())) / 2;
}

/** Fan-in and fan-out of a weight [out, in, ...kernel]. */
export function fans(tensor: Tensor): [fanIn: number, fanOut: number] {
  return fansOf("fans", tensor);
}

function fansOf(op: string, tensor: Tensor): [fanIn: number, fanOut: number] {
  checkTensor(tensor, op, "tensor");
  const { shape } = tensor;
  if (shape.length < 2) {
    throw new ShapeError(`${op}: expected a weight of 2 dims or more, got shape [${shape}]`);
  }
  const field = shape.slice(2).reduce((a, b) => a * b, 1);
  return [shape[1]! * field, shape[0]! * field];
}

/** PyTorch's gain of a nonlinearity; `param` is leakyRelu's slope. */
export function calculateGain(nonlinearity: Nonlinearity, param?: number): number {
  switch (nonlinearity) {
    case "tanh":
      return 5 / 3;
    case "relu":
      return Math.sqrt(2);
    case "leakyRelu":
      return Math.sqrt(2 / (1 + float(param ?? 0.01, "calculateGain", "param") ** 2));
    case "selu":
      return 3 / 4;
    default:
      if (/^(linear|sigmoid|conv(Transpose)?[123]d)$/.test(nonlinearity)) return 1;
      throw new ValueError(`calculateGain: unknown nonlinearity ${describe(nonlinearity)}`);
  }
}

/** Glorot and Bengio (2010), uniform. */
export function xavierUniform_(tensor: Tensor, gain = 1): Tensor {
  const [fanIn, fanOut] = fansOf("xavierUniform_", tensor);
  const std = float(gain, "xavierUniform_", "gain") * Math.sqrt(2 / (fanIn + fanOut));
  const bound = Math.sqrt(3) * std;
  return uniform_(tensor, -bound, bound);
}

/** Glorot and Bengio (2010), normal. */
export function xavierNormal_(tensor: Tensor, gain = 1): Tensor {
  const [fanIn, fanOut] = fansOf("xavierNormal_", tensor);
  const std = float(gain, "xavierNormal_", "gain") * Math.sqrt(2 / (fanIn + fanOut));
  return normal_(tensor, 0, std);
}

export interface KaimingOptions {
  /** Negative slope of the leaky ReLU behind the layer. */
  a?: number;
  mode?: FanMode;
  nonlinearity?: Nonlinearity;
}

function kaimingStd(op: string, tensor: Tensor, options: KaimingOptions): number {
  if (typeof options !== "object" || options === null) {
    throw new TypeError_(`${op}: expected an object of options, got ${describe(options)}`);
  }
  const { a = 0, mode = "fanIn", nonlinearity = "leakyRelu" } = options;
  if (mode !== "fanIn" && mode !== "fanOut") {
    throw new ValueError(`${op}: expected mode "fanIn" or "fanOut", got ${describe(mode)}`);
  }
  const fan = fansOf(op, tensor)[mode === "fanIn" ? 0 : 1];
  return calculateGain(nonlinearity, a) / Math.sqrt(fan);
}

/** He et al. (2015), uniform. */
export function kaimingUniform_(tensor: Tensor, options: KaimingOptions = {}): Tensor {
  checkTensor(tensor, "kaimingUniform_", "tensor");
  if (tensor.shape.includes(0)) return tensor;
  const bound = Math.sqrt(3) * kaimingStd("kaimingUniform_", tensor, options);
  return uniform_(tensor, -bound, bound);
}

/** He et al. (2015), normal. */
export function kaimingNormal_(tensor: Tensor, options: KaimingOptions = {}): Tensor {
  checkTensor(tensor, "kaimingNormal_", "tensor");
  if (tensor.shape.includes(0)) return tensor;
  return normal_(tensor, 0, kaimingStd("kaimingNormal_", tensor, options));
}

/** PyTorch's start of linear and convolution layers; `bias` by the weight's fan-in. */
export function layerInit(weight: Tensor, bias: Tensor | null): void {
  kaimingUniform_(weight, { a: Math.sqrt(5) });
  if (bias === null) return;
  const [fanIn] = fans(weight);
  if (fanIn > 0) uniform_(bias, -1 / Math.sqrt(fanIn), 1 / Math.sqrt(fanIn));
}
