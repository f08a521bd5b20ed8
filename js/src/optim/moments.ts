// Relatives of Adam: NAdam and RAdam.
import type { Tensor } from "../tensor.js";
import { number, PerParameter, zerosLike, type CommonOptions } from "./per_parameter.js";
import type { Params } from "./optimizer.js";

export interface MomentOptions extends CommonOptions {
  betas: readonly [number, number];
  eps: number;
  decoupledWeightDecay: boolean;
}

function average(state: { exp_avg: Tensor; exp_avg_sq: Tensor }, grad: Tensor, o: MomentOptions) {
  const [beta1, beta2] = o.betas;
  state.exp_avg.add_(grad.sub(state.exp_avg), { alpha: 1 - beta1 });
  state.exp_avg_sq.mul_(beta2).addcmul_(grad, grad, { value: 1 - beta2 });
}

export interface NAdamOptions extends MomentOptions {
  momentumDecay: number;
}
type NAdamState = { step: number; mu_product: number; exp_avg: Tensor; exp_avg_sq: Tensor };

/** Dozat, "Incorporating Nesterov momentum into Adam" (2016). */
export class NAdam extends PerParameter<NAdamOptions, NAdamState> {
  constructor(params: Params<NAdamOptions>, options: Partial<NAdamOptions> = {}) {
    const defaults = {
      lr: 2e-3,
      betas: [0.9, 0.999] as const,
      eps: 1e-8,
      weightDecay: 0,
      momentumDecay: 4e-3,
      decoupledWeightDecay: false,
      maximize: false,
    };
    super(params, defaults, options);
  }
  protected start(param: Tensor): NAdamState {
    return {
      step: 0,
      mu_product: 1,
      exp_avg: zerosLike(param),
      exp_avg_sq: zerosLike(param),
    };
  }
  protected one(param: Tensor, grad: Tensor, state: NAdamState, o: NAdamOptions): void {
    const [beta1, beta2] = o.betas;
    const { step } = state;
    const momentum = (t: number) => beta1 * (1 - 0.5 * 0.96 ** (t * o.momentumDecay));
    const mu = momentum(step);
    const next = momentum(step + 1);
    const product = number(state.mu_product) * mu;
    state.mu_product = product;
    average(state, grad, o);
    const size = state.exp_avg_sq
      .div(1 - beta2 ** step)
      .sqrt()
      .add_(o.eps);
    param.addcdiv_(grad, size, { value: (-o.lr * (1 - mu)) / (1 - product) });
    param.addcdiv_(state.exp_avg, size, { value: (-o.lr * next) / (1 - product * next) });
  }
}

type RAdamState = { step: number; exp_avg: Tensor; exp_avg_sq: Tensor };

/** Liu et al., "On the variance of the adaptive learning rate and beyond" (2020). */
export class RAdam extends PerParameter<MomentOptions, RAdamState> {
  constructor(params: Params<MomentOptions>, options: Partial<MomentOptions> = {}) {
    const defaults = {
      lr: 1e-3,
      betas: [0.9, 0.999] as const,
      eps: 1e-8,
      weightDecay: 0,
      decoupledWeightDecay: false,
      maximize: false,
    };
    super(params, defaults, options);
  }
  protected start(param: Tensor): RAdamState {
    return { step: 0, exp_avg: zerosLike(param), exp_avg_sq: zerosLike(param) };
  }
  protected one(param: Tensor, grad: Tensor, state: RAdamState, o: MomentOptions): void {
    const [beta1, beta2] = o.betas;
    const { step: t } = state;
    average(state, grad, o);
    const correction1 = 1 - beta1 ** t;
    const correction2 = 1 - beta2 ** t;
    const longest = 2 / (1 - beta2) - 1;
    const length = longest - (2 * t * beta2 ** t) / correction2;
    const corrected = state.exp_avg.div(correction1);
    if (length <= 5) {
      param.add_(corrected, { alpha: -o.lr });
      return;
    }
    const rectify = Math.sqrt(
      ((length - 4) * (length - 2) * longest) / ((longest - 4) * (longest - 2) * length),
    );
    const size = state.exp_avg_sq.sqrt().add_(o.eps);
    param.addcdiv_(corrected, size, { value: -o.lr * rectify * Math.sqrt(correction2) });
  }
}
