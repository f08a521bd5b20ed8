// optim.Adam and optim.AdamW, as fused native updates.
import { float32 } from "../dtype.js";
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";
import { Optimizer, type ParamGroup, type ParamState, type Params } from "./optimizer.js";

export interface AdamOptions {
  /** Learning rate (default 0.001). */
  lr: number;
  /** Decay of the running averages of the gradient and of its square (default 0.9, 0.999). */
  betas: readonly [number, number];
  eps: number;
  /** Default 0 for Adam, 0.01 for AdamW. */
  weightDecay: number;
  /** Divide by the largest average of squares so far. */
  amsgrad: boolean;
  maximize: boolean;
  /** Decay the weights themselves, as AdamW always does. */
  decoupledWeightDecay: boolean;
  /** Count the steps on the parameters' device, so that a captured CUDA graph counts them too. */
  capturable: boolean;
}

interface AdamState extends ParamState {
  step: Tensor;
  exp_avg: Tensor;
  exp_avg_sq: Tensor;
  max_exp_avg_sq?: Tensor;
}

const defaults: AdamOptions = {
  lr: 1e-3,
  betas: [0.9, 0.999],
  eps: 1e-8,
  weightDecay: 0,
  amsgrad: false,
  maximize: false,
  decoupledWeightDecay: false,
  capturable: false,
};

function start(p: Tensor, amsgrad: boolean, capturable: boolean): AdamState {
  const like = p.detach();
  const state: AdamState = {
    step: ops.zeros([], { dtype: float32, device: capturable ? p.device : "cpu" }),
    exp_avg: like.clone().zero_(),
    exp_avg_sq: like.clone().zero_(),
  };
  if (amsgrad) state.max_exp_avg_sq = like.clone().zero_();
  return state;
}

/** Kingma and Ba, "Adam: a method for stochastic optimization" (2015). */
export class Adam extends Optimizer<AdamOptions> {
  constructor(params: Params<AdamOptions>, options: Partial<AdamOptions> = {}) {
    super(params, defaults, options);
  }
  protected override check(o: AdamOptions): void {
    this.require(o.lr >= 0, "lr ≥ 0", o.lr);
    this.require(o.eps >= 0, "eps ≥ 0", o.eps);
    this.require(o.weightDecay >= 0, "weightDecay ≥ 0", o.weightDecay);
    for (const beta of o.betas) this.require(beta >= 0 && beta < 1, "betas in [0, 1)", beta);
  }

  protected update(group: ParamGroup<AdamOptions>): void {
    const { lr, betas, eps, weightDecay, amsgrad, maximize, capturable } = group;
    const { decoupledWeightDecay } = group;
    const params: Tensor[] = [];
    const averages: Tensor[] = [];
    const squares: Tensor[] = [];
    const maxima: Tensor[] = [];
    const steps: Tensor[] = [];
    for (const p of group.params) {
      let state = this.state.get(p) as AdamState | undefined;
      if (!state) {
        if (!p.grad) continue;
        this.state.set(p, (state = start(p, amsgrad, capturable)));
      }
      params.push(p);
      averages.push(state.exp_avg);
      squares.push(state.exp_avg_sq);
      steps.push(state.step);
      if (amsgrad) maxima.push((state.max_exp_avg_sq ??= p.detach().clone().zero_()));
    }
    ops._fusedAdam(
      params,
      averages,
      squares,
      maxima,
      steps,
      lr,
      betas[0],
      betas[1],
      eps,
      weightDecay,
      decoupledWeightDecay,
      amsgrad,
      maximize,
    );
  }
}

/** Adam with decoupled weight decay; Loshchilov and Hutter (2019). */
export class AdamW extends Adam {
  constructor(params: Params<AdamOptions>, options: Partial<AdamOptions> = {}) {
    super(params, { weightDecay: 0.01, ...options, decoupledWeightDecay: true });
  }
}
