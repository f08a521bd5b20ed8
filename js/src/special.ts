// torch.special: the generated operators and the second names of others.
import * as ops from "./ops.gen.js";
import type { Tensor } from "./tensor.js";

export * from "./special.gen.js";
export {
  digamma,
  digamma as psi,
  erf,
  erfc,
  erfinv,
  exp2,
  expm1,
  i0,
  igamma as gammainc,
  igammac as gammaincc,
  lgamma as gammaln,
  log1p,
  mvlgamma as multigammaln,
  round,
  sigmoid as expit,
  sinc,
  xlogy,
} from "./ops.gen.js";

/** n-th derivative of digamma. */
export function polygamma(n: number, input: Tensor): Tensor {
  return ops.polygamma(input, n);
}
