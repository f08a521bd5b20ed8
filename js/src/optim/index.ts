// torch.optim: optimizers and learning-rate schedules.
export { Adam, AdamW } from "./adam.js";
export type { AdamOptions } from "./adam.js";
export * as lrScheduler from "./lr_scheduler.js";
export { Optimizer } from "./optimizer.js";
export type { Closure, OptimizerState, ParamGroup, Params, ParamState } from "./optimizer.js";
export { SGD } from "./sgd.js";
export type { SGDOptions } from "./sgd.js";
export { Adadelta, Adagrad, Adamax, RMSprop } from "./adaptive.js";
export { ASGD, Rprop } from "./averaging.js";
export { NAdam, RAdam } from "./moments.js";
export { Adafactor } from "./adafactor.js";
export { LBFGS } from "./lbfgs.js";
export type { LBFGSOptions } from "./lbfgs.js";
export { Muon } from "./muon.js";
