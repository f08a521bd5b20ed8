// Dropout layers: active in training, the identity in evaluation.
import { ValueError } from "../errors.js";
import type { Tensor } from "../tensor.js";
import { bind, py, type Init } from "./bind.js";
import { functional } from "./functional_lookup.js";
import { Module } from "./module.js";

type Function = ReturnType<typeof functional>;
type DropoutInit = Init<[], [p: number, inplace: boolean], { p?: number; inplace?: boolean }>;

abstract class DropoutBase extends Module {
  readonly p: number;
  readonly inplace: boolean;
  constructor(...args: DropoutInit) {
    super();
    const { name } = new.target;
    const defaults = { p: 0.5, inplace: false };
    const o = bind<typeof defaults>(name, args, [], defaults);
    if (!(o.p >= 0 && o.p <= 1)) {
      throw new ValueError(`${name}: expected a probability p in [0, 1], got ${o.p}`);
    }
    this.p = o.p;
    this.inplace = o.inplace;
  }
  protected run(f: Function, input: Tensor): Tensor {
    return f(input, this.p, this.training, this.inplace);
  }
  override extraRepr(): string {
    return `p=${py(this.p)}, inplace=${py(this.inplace)}`;
  }
}

const dropout = functional("dropout");
/** Zeroes elements with probability p and divides the others by 1 - p. */
export class Dropout extends DropoutBase {
  forward(input: Tensor): Tensor {
    return this.run(dropout, input);
  }
}
const dropout1d = functional("dropout1d");
/** Zeroes whole channels of [N, C, L]. */
export class Dropout1d extends DropoutBase {
  forward(input: Tensor): Tensor {
    return this.run(dropout1d, input);
  }
}
const dropout2d = functional("dropout2d");
/** Zeroes whole channels of [N, C, H, W]. */
export class Dropout2d extends DropoutBase {
  forward(input: Tensor): Tensor {
    return this.run(dropout2d, input);
  }
}
const dropout3d = functional("dropout3d");
/** Zeroes whole channels of [N, C, D, H, W]. */
export class Dropout3d extends DropoutBase {
  forward(input: Tensor): Tensor {
    return this.run(dropout3d, input);
  }
}
const alphaDropout = functional("alphaDropout");
/** Dropout that keeps mean and variance under SELU; Klambauer et al. (2017). */
export class AlphaDropout extends DropoutBase {
  forward(input: Tensor): Tensor {
    return this.run(alphaDropout, input);
  }
}
const featureAlphaDropout = functional("featureAlphaDropout");
/** AlphaDropout of whole channels. */
export class FeatureAlphaDropout extends DropoutBase {
  forward(input: Tensor): Tensor {
    return this.run(featureAlphaDropout, input);
  }
}
