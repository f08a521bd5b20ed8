// torch.nn.utils: clipping of gradients, parameters as one vector.
import { noGrad } from "../autograd.js";
import { describe } from "../dtype.js";
import { ShapeError, TypeError_, ValueError } from "../errors.js";
import { checkTensor, float } from "../frame.js";
import * as ops from "../ops.gen.js";
import * as torch from "../torch.gen.js";
import { Tensor } from "../tensor.js";
import { items } from "./bind.js";
import { functional } from "./functional_lookup.js";

const amax = functional("amax");
const cat = functional("cat");

type Parameters = Tensor | Iterable<Tensor>;

function list(op: string, parameters: Parameters, name = "parameters"): Tensor[] {
  const all = parameters instanceof Tensor ? [parameters] : items(parameters, op, name);
  for (const t of all) checkTensor(t, op, name);
  return all;
}

function gradients(op: string, parameters: Parameters): Tensor[] {
  return list(op, parameters)
    .map((p) => p.grad)
    .filter((grad) => grad !== null);
}

function powerSum(t: Tensor, normType: number): Tensor {
  const flat = t.detach();
  if (normType === 2) return flat.mul(flat).sum();
  return flat.abs().pow(normType).sum();
}

/** The norm of all gradients together, as if they were one vector. */
export function getTotalNorm(tensors: Iterable<Tensor>, normType = 2): Tensor {
  const order = float(normType, "getTotalNorm", "normType");
  const given = list("getTotalNorm", tensors, "tensors");
  return noGrad(() => {
    if (given.length === 0) return torch.zeros([]);
    if (order === Infinity) {
      return given.map((t) => amax(t.detach().abs())).reduce((a, b) => a.maximum(b));
    }
    const sum = given.map((t) => powerSum(t, order)).reduce((a, b) => a.add(b));
    return order === 2 ? sum.sqrt() : sum.pow(1 / order);
  });
}

export interface ClipGradNormOptions {
  normType?: number;
  /** Refuse a norm that is NaN or infinite. */
  errorIfNonfinite?: boolean;
}

/** Scales all gradients so that their total norm is at most maxNorm; returns the norm before. */
export function clipGradNorm_(
  parameters: Parameters,
  maxNorm: number,
  options: ClipGradNormOptions | number = {},
): Tensor {
  const op = "clipGradNorm_";
  const given = typeof options === "number" ? { normType: options } : options;
  if (typeof given !== "object" || given === null) {
    throw new TypeError_(
      `${op}: expected a number or an object of options, got ${describe(given)}`,
    );
  }
  const { errorIfNonfinite = false } = given as ClipGradNormOptions;
  const normType = float(given.normType ?? 2, op, "normType");
  const most = float(maxNorm, op, "maxNorm");
  const grads = gradients(op, parameters);
  const total = getTotalNorm(grads, normType);
  if (errorIfNonfinite && !Number.isFinite(Number(total.item()))) {
    throw new ValueError(`clipGradNorm_: the total norm of order ${normType} is not finite`);
  }
  noGrad(() => {
    // Always multiplying spares the wait for the norm's value.
    const scale = torch.minimum(total.add(1e-6).reciprocal().mul(most), torch.ones([]));
    for (const grad of grads) grad.mul_(scale.to(grad.dtype));
  });
  return total;
}

/** Clamps every gradient to [-clipValue, clipValue]. */
export function clipGradValue_(parameters: Parameters, clipValue: number): void {
  const most = float(clipValue, "clipGradValue_", "clipValue");
  noGrad(() => {
    for (const grad of gradients("clipGradValue_", parameters)) {
      grad.copy_(torch.clamp(grad, -most, most));
    }
  });
}

/** All parameters flattened into one vector. */
export function parametersToVector(parameters: Iterable<Tensor>): Tensor {
  return cat(list("parametersToVector", parameters).map((p) => p.reshape([-1])));
}

/** Copies the pieces of a vector into the parameters. */
export function vectorToParameters(vector: Tensor, parameters: Iterable<Tensor>): void {
  checkTensor(vector, "vectorToParameters", "vector");
  const targets = list("vectorToParameters", parameters);
  const total = targets.reduce((n, p) => n + p.numel(), 0);
  if (vector.ndim !== 1 || vector.numel() !== total) {
    throw new ShapeError(
      `vectorToParameters: expected a vector of ${total}, got shape [${vector.shape}]`,
    );
  }
  noGrad(() => {
    let start = 0;
    for (const p of targets) {
      const n = p.numel();
      p.copy_(ops.narrow(vector, 0, start, n).reshape(p.shape));
      start += n;
    }
  });
}
