// ASGD and Rprop.
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";
import { number, PerParameter, zerosLike, type CommonOptions } from "./per_parameter.js";
import type { Params } from "./optimizer.js";

export interface ASGDOptions extends CommonOptions {
  lambd: number;
  alpha: number;
  /** Step at which averaging starts. */
  t0: number;
}
type ASGDState = { step: number; eta: number; mu: number; ax: Tensor };

/** Polyak and Juditsky, "Acceleration of stochastic approximation by averaging" (1992). */
export class ASGD extends PerParameter<ASGDOptions, ASGDState> {
  constructor(params: Params<ASGDOptions>, options: Partial<ASGDOptions> = {}) {
    const defaults = {
      lr: 1e-2,
      lambd: 1e-4,
      alpha: 0.75,
      t0: 1e6,
      weightDecay: 0,
      maximize: false,
    };
    super(params, defaults, options);
  }
  protected start(param: Tensor, o: ASGDOptions): ASGDState {
    // PyTorch keeps both numbers in float32.
    return { step: 0, eta: Math.fround(o.lr), mu: 1, ax: zerosLike(param) };
  }
  protected one(param: Tensor, grad: Tensor, state: ASGDState, o: ASGDOptions): void {
    const eta = number(state.eta);
    const mu = number(state.mu);
    param.mul_(1 - o.lambd * eta).add_(grad, { alpha: -eta });
    if (mu === 1) state.ax.copy_(param);
    else state.ax.add_(param.sub(state.ax), { alpha: mu });
    state.eta = Math.fround(o.lr / (1 + o.lambd * o.lr * state.step) ** o.alpha);
    state.mu = Math.fround(1 / Math.max(1, state.step - o.t0));
  }
}

export interface RpropOptions extends CommonOptions {
  /** Factors of the step size after a change of sign and without one. */
  etas: readonly [number, number];
  stepSizes: readonly [number, number];
}
type RpropState = { step: number; prev: Tensor; step_size: Tensor };

/** Riedmiller and Braun, "The RPROP algorithm" (1993). */
export class Rprop extends PerParameter<RpropOptions, RpropState> {
  constructor(
    params: Params<RpropOptions>,
    options: Partial<Omit<RpropOptions, "weightDecay">> = {},
  ) {
    const defaults = {
      lr: 1e-2,
      etas: [0.5, 1.2] as const,
      stepSizes: [1e-6, 50] as const,
      weightDecay: 0,
      maximize: false,
    };
    super(params, defaults, options);
  }
  protected start(param: Tensor, o: RpropOptions): RpropState {
    return { step: 0, prev: zerosLike(param), step_size: zerosLike(param).fill_(o.lr) };
  }
  protected one(param: Tensor, grad: Tensor, state: RpropState, o: RpropOptions): void {
    const [shrink, grow] = o.etas;
    const [least, most] = o.stepSizes;
    const product = grad.mul(state.prev);
    const turned = product.lt(0).to(grad.dtype);
    const kept = product.gt(0).to(grad.dtype);
    const factor = turned
      .mul(shrink - 1)
      .add_(kept.mul(grow - 1))
      .add_(1);
    state.step_size.copy_(ops.clamp(state.step_size.mul(factor), least, most));
    // After a change of sign the step is left out, and the next product is 0.
    const used = grad.mul(turned.neg().add_(1));
    param.addcmul_(used.sign(), state.step_size, { value: -1 });
    state.prev.copy_(used);
  }
}
