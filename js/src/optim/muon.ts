// optim.Muon: momentum whose matrices are made orthogonal before the step.
import { bfloat16, float32 } from "../dtype.js";
import { ShapeError } from "../errors.js";
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";
import { PerParameter, zerosLike, type CommonOptions } from "./per_parameter.js";
import type { Params, ParamState } from "./optimizer.js";

export interface MuonOptions extends CommonOptions {
  momentum: number;
  nesterov: boolean;
  nsCoefficients: readonly [number, number, number];
  eps: number;
  nsSteps: number;
  /** How the rate follows the shape; null is "original". */
  adjustLrFn: "original" | "match_rms_adamw" | null;
}

type MuonState = { step: number; momentum_buffer: Tensor };

/** An orthogonal matrix near `grad` by Newton-Schulz iterations in bfloat16. */
function orthogonal(grad: Tensor, o: MuonOptions): Tensor {
  const [a, b, c] = o.nsCoefficients;
  const [rows, columns] = grad.shape as [number, number];
  let x = grad.to(bfloat16);
  if (rows > columns) x = x.transpose(0, 1);
  // Half types are summed in float32 and rounded once.
  const wide = x.to(float32);
  const norm = wide.mul(wide).sum().sqrt().to(bfloat16);
  x = x.div(ops.clamp(norm, o.eps, Infinity));
  for (let i = 0; i < o.nsSteps; i++) {
    const gram = ops.mm(x, x.transpose(0, 1));
    const update = ops.addmm(gram, gram, gram, { beta: b, alpha: c });
    x = ops.addmm(x, update, x, { beta: a });
  }
  return rows > columns ? x.transpose(0, 1) : x;
}

/** Jordan et al., "Muon: an optimizer for hidden layers" (2024). Matrices only. */
export class Muon extends PerParameter<MuonOptions, MuonState> {
  constructor(params: Params<MuonOptions>, options: Partial<MuonOptions> = {}) {
    const defaults = {
      lr: 1e-3,
      weightDecay: 0.1,
      momentum: 0.95,
      nesterov: true,
      nsCoefficients: [3.4445, -4.775, 2.0315] as const,
      eps: 1e-7,
      nsSteps: 5,
      adjustLrFn: null,
      maximize: false,
    };
    super(params, defaults, options);
    for (const p of this.paramGroups.flatMap((group) => group.params)) {
      if (p.ndim === 2) continue;
      throw new ShapeError(`Muon: expected matrices, got a parameter of shape [${p.shape}]`);
    }
  }
  protected override check(o: MuonOptions): void {
    super.check(o);
    this.require(o.nsSteps < 100, "nsSteps below 100", o.nsSteps);
  }
  protected override decay(): null {
    return null;
  }
  // PyTorch counts no steps here.
  protected override stateTemplate(param: Tensor): ParamState {
    return { momentum_buffer: param };
  }
  protected start(param: Tensor): MuonState {
    return { step: 0, momentum_buffer: zerosLike(param) };
  }
  protected one(param: Tensor, grad: Tensor, state: MuonState, o: MuonOptions): void {
    const { momentum_buffer: buffer } = state;
    buffer.add_(grad.sub(buffer), { alpha: 1 - o.momentum });
    const followed = o.nesterov ? grad.add(buffer.sub(grad), { alpha: o.momentum }) : buffer;
    const update = orthogonal(followed, o);
    const [rows, columns] = param.shape as [number, number];
    const ratio =
      o.adjustLrFn === "match_rms_adamw"
        ? 0.2 * Math.sqrt(Math.max(rows, columns))
        : Math.sqrt(Math.max(1, rows / columns));
    param.mul_(1 - o.lr * o.weightDecay).add_(update, { alpha: -o.lr * ratio });
  }
}
