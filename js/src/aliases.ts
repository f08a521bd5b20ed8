// Second names that PyTorch gives operators: torch.multiply is torch.mul.
import { install } from "./arguments.js";
import type { Tensor } from "./tensor.js";

export {
  abs as absolute,
  acos as arccos,
  acosh as arccosh,
  asin as arcsin,
  asinh as arcsinh,
  atan as arctan,
  atan2 as arctan2,
  atanh as arctanh,
  div as divide,
  trunc as fix,
  gt as greater,
  ge as greaterEqual,
  lt as less,
  le as lessEqual,
  mul as multiply,
  neg as negative,
  ne as notEqual,
  sub as subtract,
} from "./ops.gen.js";

const methods = {
  absolute: "abs",
  arccos: "acos",
  arccosh: "acosh",
  arcsin: "asin",
  arcsinh: "asinh",
  arctan: "atan",
  arctan2: "atan2",
  arctanh: "atanh",
  divide: "div",
  fix: "trunc",
  greater: "gt",
  greaterEqual: "ge",
  less: "lt",
  lessEqual: "le",
  multiply: "mul",
  negative: "neg",
  notEqual: "ne",
  subtract: "sub",
} as const;

type Names = typeof methods;
type Plain = { [K in keyof Names]: Tensor[Names[K]] };
type InPlace = { [K in keyof Names as `${K}_`]: Tensor[`${Names[K]}_`] };

declare module "./tensor.js" {
  interface Tensor extends Plain, InPlace {}
}

/** Gives the methods their second names; the methods must be there. */
export function installAliases(prototype: object): void {
  const all = prototype as Record<string, unknown>;
  const pairs = Object.entries(methods).flatMap(([name, original]) =>
    ["", "_"].map((end) => [name + end, all[original + end]]),
  );
  install(prototype, Object.fromEntries(pairs));
}
