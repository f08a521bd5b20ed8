// The base of the optimizers that update one parameter after the other with tensor operators.
import { Tensor } from "../tensor.js";
import { Optimizer, type ParamGroup, type ParamState } from "./optimizer.js";

/** Options that all of them have. */
export interface CommonOptions {
  lr: number;
  weightDecay: number;
  maximize: boolean;
  /** Decay the weights themselves instead of adding the decay to the gradient. */
  decoupledWeightDecay?: boolean;
}

/** A number of a state; those that PyTorch saved are tensors. */
export function number(held: unknown): number {
  return Number(held instanceof Tensor ? held.item() : held);
}

/** Zeros in the layout of a parameter. */
export function zerosLike(param: Tensor): Tensor {
  return param.detach().clone().zero_();
}

/** Subclasses define the state of a parameter and its update. */
export abstract class PerParameter<
  Options extends CommonOptions,
  State extends ParamState & { step: number },
> extends Optimizer<Options> {
  protected abstract start(param: Tensor, options: Options): State;
  /** Updates `param`; `grad` has its sign and weight decay and must not be written to. */
  protected abstract one(param: Tensor, grad: Tensor, state: State, options: Options): void;

  protected override check(o: Options): void {
    this.require(o.lr >= 0, "lr ≥ 0", o.lr);
    this.require(o.weightDecay >= 0, "weightDecay ≥ 0", o.weightDecay);
  }

  protected override stateTemplate(param: Tensor, group: ParamGroup<Options>): ParamState {
    return this.start(param, group);
  }

  /** How the weights decay: into the gradient, of themselves, or (null) by the optimizer. */
  protected decay(options: Options): "gradient" | "weights" | null {
    if (options.weightDecay === 0) return null;
    return options.decoupledWeightDecay ? "weights" : "gradient";
  }

  protected update(group: ParamGroup<Options>): void {
    const decay = this.decay(group);
    for (const [param, given] of this.withGrads(group.params)) {
      const state = this.stateOf(param, () => this.start(param, group));
      state.step = number(state.step) + 1;
      let grad = group.maximize ? given.neg() : given;
      if (decay === "weights") param.mul_(1 - group.lr * group.weightDecay);
      if (decay === "gradient") grad = grad.add(param, { alpha: group.weightDecay });
      this.one(param, grad, state, group);
    }
  }
}
