// torch.autograd.gradcheck and gradgradcheck: derivatives against central differences.
import { enableGrad, grad, noGrad } from "./autograd.js";
import { fromBytes, toBytes } from "./convert.js";
import { AutogradError } from "./errors.js";
import * as ops from "./ops.gen.js";
import { Tensor } from "./tensor.js";

type Fn = (...inputs: Tensor[]) => Tensor | Iterable<Tensor>;

export interface GradcheckOptions {
  /** Step of the central difference (default 1e-6). */
  eps?: number;
  atol?: number;
  rtol?: number;
}

function outputsOf(result: Tensor | Iterable<Tensor>): Tensor[] {
  const list = result instanceof Tensor ? [result] : [...result];
  return list.filter((t) => t instanceof Tensor && (t.isFloatingPoint() || t.isComplex()));
}

// Weights that differ from element to element, so that a permuted gradient shows.
function weightsLike(t: Tensor, seed: number): Tensor {
  const n = t.numel() * (t.isComplex() ? 2 : 1);
  const values = Float64Array.from({ length: n }, (_, i) => Math.sin(1.7 * (i + 1) + seed) + 0.1);
  const bytes = new Uint8Array(values.buffer);
  return fromBytes(t.dtype, t.shape, bytes);
}

function flat(t: Tensor): Float64Array {
  return new Float64Array(toBytes(t).buffer);
}

// Re(sum(conj(w) * (a - b))) over all outputs: its gradient is, by PyTorch's convention for
// complex numbers, the one that autograd gives for w. Differences first, so that one large
// element does not drown the others.
function weightedDifference(a: Float64Array[], b: Float64Array[], weights: Tensor[]): number {
  let sum = 0;
  a.forEach((values, k) => {
    const w = flat(weights[k]!);
    for (let i = 0; i < values.length; i++) sum += w[i]! * (values[i]! - b[k]![i]!);
  });
  return sum;
}

function checkInputs(inputs: readonly Tensor[]): Tensor[] {
  const wanted = inputs.filter((t) => t instanceof Tensor && t.requiresGrad);
  if (wanted.length === 0) {
    throw new AutogradError("gradcheck: expected at least one input that requires grad");
  }
  for (const t of wanted) {
    if (t.dtype.itemsize !== (t.isComplex() ? 16 : 8)) {
      throw new AutogradError(`gradcheck: expected float64 or complex128 inputs, got ${t.dtype}`);
    }
  }
  return wanted;
}

function numeric(
  fn: Fn,
  inputs: readonly Tensor[],
  which: Tensor,
  weights: Tensor[],
  eps: number,
): Float64Array {
  const base = flat(which);
  const result = new Float64Array(base.length);
  const at = (i: number, delta: number): Float64Array[] => {
    const moved = base.slice();
    moved[i]! += delta;
    const x = fromBytes(which.dtype, which.shape, new Uint8Array(moved.buffer));
    const laid = ops.emptyStrided(which.shape, which.stride(), { dtype: which.dtype });
    const same = which.isContiguous() || which.stride().includes(0) ? x : laid.copy_(x);
    return outputsOf(fn(...inputs.map((t) => (t === which ? same : t)))).map(flat);
  };
  for (let i = 0; i < base.length; i++) {
    result[i] = weightedDifference(at(i, eps), at(i, -eps), weights) / (2 * eps);
  }
  return result;
}

/**
 * Compares autograd's gradients of `fn` with central differences. Inputs that require grad must
 * be float64 or complex128. Throws AutogradError with the first difference; returns true.
 */
export function gradcheck(fn: Fn, inputs: readonly Tensor[], options: GradcheckOptions = {}): true {
  const { eps = 1e-6, atol = 1e-5, rtol = 1e-3 } = options;
  const wanted = checkInputs(inputs);
  const outputs = outputsOf(fn(...inputs)).filter((t) => t.requiresGrad);
  if (outputs.length === 0) {
    throw new AutogradError("gradcheck: no output of the function requires grad");
  }
  const all = outputsOf(noGrad(() => fn(...inputs)));
  const weights = all.map((t, k) => weightsLike(t, k));
  const used = outputsOf(fn(...inputs));
  const kept = used.map((t, k) => [t, weights[k]!] as const).filter(([t]) => t.requiresGrad);
  const grads = grad(
    kept.map(([t]) => t),
    wanted,
    { gradOutputs: kept.map(([, w]) => w), allowUnused: true },
  );
  const live = used.map((t) => t.requiresGrad);
  wanted.forEach((x, k) => {
    const masked = (...args: Tensor[]): Tensor[] =>
      outputsOf(fn(...args)).filter((_, i) => live[i]);
    const liveWeights = weights.filter((_, i) => live[i]);
    const expected = noGrad(() => numeric(masked, inputs, x, liveWeights, eps));
    const g = grads[k];
    const actual = g ? flat(ops._toDtype(g, x.dtype)) : new Float64Array(expected.length);
    for (let i = 0; i < expected.length; i++) {
      const difference = Math.abs(expected[i]! - actual[i]!);
      const bothNaN = Number.isNaN(expected[i]) && Number.isNaN(actual[i]);
      if (!bothNaN && !(difference <= atol + rtol * Math.abs(expected[i]!))) {
        throw new AutogradError(
          `gradcheck: gradient of input ${inputs.indexOf(x)} at element ${i}: ` +
            `autograd gives ${actual[i]}, central differences ${expected[i]}`,
        );
      }
    }
  });
  return true;
}

/** gradcheck of the gradient itself: the second derivative. */
export function gradgradcheck(
  fn: Fn,
  inputs: readonly Tensor[],
  options: GradcheckOptions = {},
): true {
  const wanted = checkInputs(inputs);
  const outputs = outputsOf(fn(...inputs)).filter((t) => t.requiresGrad);
  const weights = outputs.map((t, k) => weightsLike(t, k + 10).requiresGrad_(true));
  const gradient = (...args: Tensor[]): Tensor[] => {
    const xs = args.slice(0, inputs.length);
    const leaves = inputs.map((t, i) => (wanted.includes(t) ? xs[i]! : t));
    const targets = leaves.filter((_, i) => wanted.includes(inputs[i]!));
    for (const t of targets) if (!t.requiresGrad) t.requiresGrad_(true);
    const ys = outputsOf(enableGrad(() => fn(...leaves))).filter((t) => t.requiresGrad);
    const found = enableGrad(() =>
      grad(ys, targets, {
        gradOutputs: args.slice(inputs.length),
        createGraph: true,
        allowUnused: true,
      }),
    );
    // A gradient that does not depend on anything is a constant: nothing to check.
    return found.map((g, i) => g ?? ops.mul(targets[i]!, 0));
  };
  const first = gradient(...inputs, ...weights);
  if (!first.some((g) => g.requiresGrad)) return true;
  return gradcheck(gradient, [...inputs, ...weights], options);
}
