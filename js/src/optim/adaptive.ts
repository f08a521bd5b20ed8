// Optimizers that divide by running sizes of the gradient: Adagrad, Adadelta, RMSprop, Adamax.
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";
import { PerParameter, zerosLike, type CommonOptions } from "./per_parameter.js";
import type { Params } from "./optimizer.js";

export interface AdagradOptions extends CommonOptions {
  lrDecay: number;
  initialAccumulatorValue: number;
  eps: number;
}

/** Duchi et al., "Adaptive subgradient methods" (2011). */
export class Adagrad extends PerParameter<AdagradOptions, { step: number; sum: Tensor }> {
  constructor(params: Params<AdagradOptions>, options: Partial<AdagradOptions> = {}) {
    const defaults = {
      lr: 1e-2,
      lrDecay: 0,
      weightDecay: 0,
      initialAccumulatorValue: 0,
      eps: 1e-10,
      maximize: false,
    };
    super(params, defaults, options);
  }
  protected start(param: Tensor, o: AdagradOptions) {
    return { step: 0, sum: zerosLike(param).fill_(o.initialAccumulatorValue) };
  }
  protected one(
    param: Tensor,
    grad: Tensor,
    state: { step: number; sum: Tensor },
    o: AdagradOptions,
  ): void {
    state.sum.addcmul_(grad, grad);
    const rate = o.lr / (1 + (state.step - 1) * o.lrDecay);
    param.addcdiv_(grad, state.sum.sqrt().add_(o.eps), { value: -rate });
  }
}

export interface AdadeltaOptions extends CommonOptions {
  rho: number;
  eps: number;
}
type AdadeltaState = { step: number; square_avg: Tensor; acc_delta: Tensor };

/** Zeiler, "ADADELTA" (2012). */
export class Adadelta extends PerParameter<AdadeltaOptions, AdadeltaState> {
  constructor(params: Params<AdadeltaOptions>, options: Partial<AdadeltaOptions> = {}) {
    super(params, { lr: 1, rho: 0.9, eps: 1e-6, weightDecay: 0, maximize: false }, options);
  }
  protected start(param: Tensor): AdadeltaState {
    return { step: 0, square_avg: zerosLike(param), acc_delta: zerosLike(param) };
  }
  protected one(param: Tensor, grad: Tensor, state: AdadeltaState, o: AdadeltaOptions): void {
    const { square_avg, acc_delta } = state;
    square_avg.mul_(o.rho).addcmul_(grad, grad, { value: 1 - o.rho });
    const size = square_avg.add(o.eps).sqrt();
    const delta = acc_delta.add(o.eps).sqrt().div(size).mul(grad);
    acc_delta.mul_(o.rho).addcmul_(delta, delta, { value: 1 - o.rho });
    param.add_(delta, { alpha: -o.lr });
  }
}

export interface RMSpropOptions extends CommonOptions {
  alpha: number;
  eps: number;
  momentum: number;
  /** Divide by the deviation instead of the size of the gradient. */
  centered: boolean;
}
type RMSpropState = {
  step: number;
  square_avg: Tensor;
  grad_avg?: Tensor;
  momentum_buffer?: Tensor;
};

/** Hinton, lecture notes (2012); centered: Graves (2013). */
export class RMSprop extends PerParameter<RMSpropOptions, RMSpropState> {
  constructor(params: Params<RMSpropOptions>, options: Partial<RMSpropOptions> = {}) {
    const defaults = {
      lr: 1e-2,
      alpha: 0.99,
      eps: 1e-8,
      weightDecay: 0,
      momentum: 0,
      centered: false,
      maximize: false,
    };
    super(params, defaults, options);
  }
  protected start(param: Tensor, o: RMSpropOptions): RMSpropState {
    const state: RMSpropState = { step: 0, square_avg: zerosLike(param) };
    if (o.momentum > 0) state.momentum_buffer = zerosLike(param);
    if (o.centered) state.grad_avg = zerosLike(param);
    return state;
  }
  protected one(param: Tensor, grad: Tensor, state: RMSpropState, o: RMSpropOptions): void {
    const { square_avg, grad_avg, momentum_buffer } = state;
    square_avg.mul_(o.alpha).addcmul_(grad, grad, { value: 1 - o.alpha });
    let square = square_avg;
    if (grad_avg) {
      grad_avg.add_(grad.sub(grad_avg), { alpha: 1 - o.alpha });
      square = square_avg.sub(grad_avg.mul(grad_avg));
    }
    const size = square.sqrt().add_(o.eps);
    if (momentum_buffer) {
      momentum_buffer.mul_(o.momentum).addcdiv_(grad, size);
      param.add_(momentum_buffer, { alpha: -o.lr });
    } else param.addcdiv_(grad, size, { value: -o.lr });
  }
}

export interface AdamaxOptions extends CommonOptions {
  betas: readonly [number, number];
  eps: number;
}
type AdamaxState = { step: number; exp_avg: Tensor; exp_inf: Tensor };

/** Adam with the maximum norm; Kingma and Ba (2015). */
export class Adamax extends PerParameter<AdamaxOptions, AdamaxState> {
  constructor(params: Params<AdamaxOptions>, options: Partial<AdamaxOptions> = {}) {
    const defaults = {
      lr: 2e-3,
      betas: [0.9, 0.999] as const,
      eps: 1e-8,
      weightDecay: 0,
      maximize: false,
    };
    super(params, defaults, options);
  }
  protected start(param: Tensor): AdamaxState {
    return { step: 0, exp_avg: zerosLike(param), exp_inf: zerosLike(param) };
  }
  protected one(param: Tensor, grad: Tensor, state: AdamaxState, o: AdamaxOptions): void {
    const [beta1, beta2] = o.betas;
    const { exp_avg, exp_inf } = state;
    exp_avg.add_(grad.sub(exp_avg), { alpha: 1 - beta1 });
    exp_inf.copy_(ops.maximum(exp_inf.mul(beta2), grad.abs().add_(o.eps)));
    param.addcdiv_(exp_avg, exp_inf, { value: -o.lr / (1 - beta1 ** state.step) });
  }
}
