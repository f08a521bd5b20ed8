// optim.Adafactor: second moments of matrices kept as a row and a column.
import { bfloat16, float16, float32 } from "../dtype.js";
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";
import { PerParameter, zerosLike, type CommonOptions } from "./per_parameter.js";
import type { Params } from "./optimizer.js";

export interface AdafactorOptions extends CommonOptions {
  beta2Decay: number;
  /** Least second moment (null: the dtype's machine epsilon) and least size of a parameter. */
  eps: readonly [number | null, number];
  /** Updates longer than this root mean square are shortened. */
  d: number;
}

type AdafactorState = { step: number; row_var?: Tensor; col_var?: Tensor; variance?: Tensor };

function epsilon(t: Tensor): number {
  if (t.dtype === float16) return 2 ** -10;
  if (t.dtype === bfloat16) return 2 ** -7;
  return t.dtype === float32 ? 2 ** -23 : 2 ** -52;
}

const rootMeanSquare = (t: Tensor) =>
  Math.sqrt(Number(t.mul(t).sum().item())) / Math.sqrt(t.numel());

// The mean of the squares along one dim, which stays with size 1.
function meanSquare(grad: Tensor, dim: number): Tensor {
  return grad.mul(grad).sum(dim, true).div(grad.size(dim));
}

/** Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost" (2018). */
export class Adafactor extends PerParameter<AdafactorOptions, AdafactorState> {
  constructor(params: Params<AdafactorOptions>, options: Partial<AdafactorOptions> = {}) {
    const defaults = {
      lr: 1e-2,
      beta2Decay: -0.8,
      eps: [null, 1e-3] as const,
      d: 1,
      weightDecay: 0,
      maximize: false,
    };
    super(params, defaults, options);
  }
  // The size of a parameter is taken before it decays, so the decay waits until then.
  protected override decay(): null {
    return null;
  }
  protected start(param: Tensor): AdafactorState {
    if (param.ndim < 2) return { step: 0, variance: zerosLike(param) };
    const last = param.ndim - 1;
    const zeros = zerosLike(param);
    return {
      step: 0,
      row_var: zeros.narrow(last, 0, 1).clone(),
      col_var: zeros.narrow(last - 1, 0, 1).clone(),
    };
  }
  protected one(param: Tensor, grad: Tensor, state: AdafactorState, o: AdafactorOptions): void {
    const [least, smallest] = o.eps;
    const eps = least ?? epsilon(param);
    const share = state.step ** o.beta2Decay;
    const rate = Math.min(o.lr, 1 / Math.sqrt(state.step));
    const alpha = Math.max(smallest, rootMeanSquare(param)) * rate;
    if (o.weightDecay !== 0) param.mul_(1 - o.lr * o.weightDecay);
    const moment = this.moment(grad, state, share, eps);
    const update = ops
      .clamp(moment, eps * eps, Infinity)
      .rsqrt()
      .mul(grad);
    const shorten = Math.max(1, rootMeanSquare(update) / o.d);
    param.add_(update, { alpha: -alpha / shorten });
  }
  private moment(grad: Tensor, state: AdafactorState, share: number, eps: number): Tensor {
    const { row_var, col_var, variance } = state;
    const follow = (average: Tensor, now: Tensor) =>
      average.add_(now.sub(average), { alpha: share });
    if (variance) return follow(variance, grad.mul(grad));
    follow(row_var!, meanSquare(grad, -1));
    follow(col_var!, meanSquare(grad, -2));
    const mean = row_var!.sum(-2, true).div(row_var!.size(-2));
    return row_var!.mul(col_var!).div(ops.clamp(mean, eps, Infinity));
  }
}
