// optim.SGD: stochastic gradient descent with momentum.
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";
import { Optimizer, type ParamGroup, type Params } from "./optimizer.js";

export interface SGDOptions {
  /** Learning rate (default 0.001). */
  lr: number;
  momentum: number;
  dampening: number;
  weightDecay: number;
  nesterov: boolean;
  /** Go up instead of down. */
  maximize: boolean;
}

const defaults: SGDOptions = {
  lr: 1e-3,
  momentum: 0,
  dampening: 0,
  weightDecay: 0,
  nesterov: false,
  maximize: false,
};

/** p ← p - lr · v with v ← momentum · v + (1 - dampening) · grad. One native call per group. */
export class SGD extends Optimizer<SGDOptions> {
  constructor(params: Params<SGDOptions>, options: Partial<SGDOptions> = {}) {
    super(params, defaults, options);
  }
  protected override check(o: SGDOptions): void {
    this.require(o.lr >= 0, "lr ≥ 0", o.lr);
    this.require(o.momentum >= 0, "momentum ≥ 0", o.momentum);
    this.require(o.weightDecay >= 0, "weightDecay ≥ 0", o.weightDecay);
    const nesterov = !o.nesterov || (o.momentum > 0 && o.dampening === 0);
    this.require(nesterov, "a momentum and no dampening with nesterov", o.momentum);
  }

  protected update(group: ParamGroup<SGDOptions>): void {
    const { params } = group;
    if (group.momentum === 0) {
      this.run(group, params, [], false);
      return;
    }
    const known: Tensor[] = [];
    const fresh: Tensor[] = [];
    for (const p of params) {
      if (this.state.get(p)?.["momentum_buffer"]) known.push(p);
      else if (p.grad) fresh.push(p);
    }
    const buffer = (p: Tensor) => this.state.get(p)!["momentum_buffer"] as Tensor;
    if (known.length > 0) this.run(group, known, known.map(buffer), false);
    if (fresh.length === 0) return;
    for (const p of fresh) this.state.set(p, { momentum_buffer: p.detach().clone() });
    this.run(group, fresh, fresh.map(buffer), true);
  }
  private run(o: SGDOptions, params: Tensor[], buffers: Tensor[], first: boolean): void {
    const { lr, momentum, dampening, weightDecay, nesterov, maximize } = o;
    ops._fusedSgd(params, buffers, first, lr, momentum, dampening, weightDecay, nesterov, maximize);
  }
}
