// torch.optim.lr_scheduler: learning rates that follow the number of steps or a metric.
export { LRScheduler } from "./schedulers/base.js";
export type { SchedulerState } from "./schedulers/base.js";
export * from "./schedulers/simple.js";
export * from "./schedulers/cyclic.js";
export * from "./schedulers/plateau.js";
export * from "./schedulers/combined.js";
