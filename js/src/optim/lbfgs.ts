// optim.LBFGS: a quasi-Newton method that calls the closure several times per step.
import { enableGrad, noGrad } from "../autograd.js";
import { describe } from "../dtype.js";
import { NotImplementedError, TypeError_, ValueError } from "../errors.js";
import { checkTensor } from "../frame.js";
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";
import { functional } from "../nn/functional_lookup.js";
import { dot, largest, strongWolfe, type Point } from "./line_search.js";
import { number } from "./per_parameter.js";
import { Optimizer, type Closure, type ParamState, type Params } from "./optimizer.js";

const cat = functional("cat");

export interface LBFGSOptions {
  lr: number;
  /** Iterations per step. */
  maxIter: number;
  /** Evaluations of the closure per step (default: 1.25 times maxIter). */
  maxEval: number | null;
  toleranceGrad: number;
  toleranceChange: number;
  historySize: number;
  lineSearchFn: "strong_wolfe" | null;
}

const mostIterations = 1e6;

interface Memory extends ParamState {
  func_evals: number;
  n_iter: number;
  d: Tensor | null;
  t: number;
  old_dirs: Tensor[];
  old_stps: Tensor[];
  ro: number[];
  H_diag: number;
  prev_flat_grad: Tensor | null;
  prev_loss: number;
}

/** Nocedal, "Updating quasi-Newton matrices with limited storage" (1980). One group only. */
export class LBFGS extends Optimizer<LBFGSOptions> {
  constructor(params: Params<LBFGSOptions>, options: Partial<LBFGSOptions> = {}) {
    const defaults = {
      lr: 1,
      maxIter: 20,
      maxEval: null,
      toleranceGrad: 1e-7,
      toleranceChange: 1e-9,
      historySize: 100,
      lineSearchFn: null,
    };
    super(params, defaults, options);
    if (this.paramGroups.length !== 1) {
      throw new NotImplementedError("LBFGS: expected one group of parameters");
    }
  }
  protected override check(o: LBFGSOptions): void {
    this.require(o.lr >= 0, "lr ≥ 0", o.lr);
    this.require(o.maxIter <= mostIterations, `maxIter up to ${mostIterations}`, o.maxIter);
  }
  // What PyTorch has not set yet is not saved, and starts as it does here.
  protected override stateTemplate(param: Tensor, _: object, held: ParamState): ParamState {
    const full = { ...emptyMemory(), old_dirs: [param], old_stps: [param], ro: [0] };
    return Object.fromEntries(Object.entries(full).filter(([key]) => key in held));
  }
  protected update(): void {
    throw new TypeError_("LBFGS: step() needs a closure that computes the loss again");
  }

  override step(): null;
  override step(closure: Closure): Tensor;
  override step(closure?: Closure): Tensor | null {
    this.checkClosure(closure);
    if (!closure) throw new TypeError_("LBFGS: step() needs a closure that computes the loss");
    const group = this.paramGroups[0]!;
    const { lineSearchFn } = group;
    if (lineSearchFn !== null && lineSearchFn !== "strong_wolfe") {
      throw new ValueError(
        `LBFGS: expected lineSearchFn "strong_wolfe" or null, got ${describe(lineSearchFn)}`,
      );
    }
    const evaluate = (): Tensor => {
      const loss = enableGrad(closure);
      checkTensor(loss, "LBFGS", "the closure's loss");
      return loss;
    };
    const first = evaluate();
    noGrad(() => this.iterate(evaluate, Number(first.item())));
    this.finishStep();
    return first;
  }

  private iterate(closure: Closure, firstLoss: number): void {
    const group = this.paramGroups[0]!;
    const { maxIter, toleranceGrad, toleranceChange, lr } = group;
    const maxEval = group.maxEval ?? Math.floor((maxIter * 5) / 4);
    const memory = this.stateOf<Memory>(group.params[0]!, emptyMemory);
    Object.assign(memory, { ...emptyMemory(), ...memory });
    let loss = firstLoss;
    let grad = this.flatGrad();
    let evals = 1;
    memory.func_evals += 1;
    if (largest(grad) <= toleranceGrad) return;
    for (let i = 1; i <= maxIter; i++) {
      memory.n_iter += 1;
      const d = direction(memory, grad, group.historySize);
      memory.prev_flat_grad = grad.clone();
      const before = loss;
      const t = memory.n_iter === 1 ? Math.min(1, 1 / Number(grad.abs().sum().item())) * lr : lr;
      memory.d = d;
      memory.t = t;
      memory.prev_loss = loss;
      const slope = dot(grad, d);
      if (slope > -toleranceChange) break;
      let used = 0;
      if (group.lineSearchFn) {
        const start = { t: 0, loss, grad, slope };
        const found = strongWolfe((at) => this.evaluate(closure, at, d), t, d, start);
        ({ loss, grad } = found.point);
        memory.t = found.point.t;
        used = found.evals;
        this.move(found.point.t, d);
      } else {
        this.move(t, d);
        if (i !== maxIter) {
          loss = Number(closure().item());
          grad = this.flatGrad();
          used = 1;
        }
      }
      evals += used;
      memory.func_evals += used;
      const done =
        evals >= maxEval ||
        largest(grad) <= toleranceGrad ||
        largest(d.mul(memory.t)) <= toleranceChange ||
        Math.abs(loss - before) < toleranceChange;
      if (done) break;
    }
  }

  private flatGrad(): Tensor {
    const { params } = this.paramGroups[0]!;
    return cat(
      params.map((p) => (p.grad ? p.grad.detach() : p.detach().mul(0)).reshape([p.numel()])),
    );
  }
  private move(t: number, d: Tensor): void {
    let start = 0;
    for (const p of this.paramGroups[0]!.params) {
      const n = p.numel();
      p.add_(ops.narrow(d, 0, start, n).reshape(p.shape), { alpha: t });
      start += n;
    }
  }
  /** Loss and gradient at distance t along d, from where the parameters are and stay. */
  private evaluate(closure: Closure, t: number, d: Tensor): Point {
    const { params } = this.paramGroups[0]!;
    const kept = params.map((p) => p.detach().clone());
    this.move(t, d);
    const loss = Number(closure().item());
    const grad = this.flatGrad();
    params.forEach((p, i) => p.copy_(kept[i]!));
    return { t, loss, grad, slope: dot(grad, d) };
  }
}

function emptyMemory(): Memory {
  return {
    func_evals: 0,
    n_iter: 0,
    d: null,
    t: 0,
    old_dirs: [],
    old_stps: [],
    ro: [],
    H_diag: 1,
    prev_flat_grad: null,
    prev_loss: 0,
  };
}

/** The next direction by the two-loop recursion; takes the last step into the memory. */
function direction(memory: Memory, grad: Tensor, historySize: number): Tensor {
  if (memory.n_iter === 1 || !memory.d || !memory.prev_flat_grad) return grad.neg();
  const { old_dirs, old_stps, ro } = memory;
  const y = grad.sub(memory.prev_flat_grad);
  const s = memory.d.mul(memory.t);
  const ys = dot(y, s);
  if (ys > 1e-10) {
    if (old_dirs.length === historySize) {
      for (const list of [old_dirs, old_stps, ro]) list.shift();
    }
    old_dirs.push(y);
    old_stps.push(s);
    ro.push(1 / ys);
    memory.H_diag = ys / dot(y, y);
  }
  const q = grad.neg();
  const al: number[] = [];
  for (let i = old_dirs.length - 1; i >= 0; i--) {
    al[i] = dot(old_stps[i]!, q) * number(ro[i]);
    q.add_(old_dirs[i]!, { alpha: -al[i]! });
  }
  q.mul_(memory.H_diag);
  for (let i = 0; i < old_dirs.length; i++) {
    q.add_(old_stps[i]!, { alpha: al[i]! - dot(old_dirs[i]!, q) * number(ro[i]) });
  }
  return q;
}
