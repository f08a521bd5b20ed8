// The schedule that follows a metric.
import { describe } from "../../dtype.js";
import { ValueError } from "../../errors.js";
import { float } from "../../frame.js";
import { bind, floatTuple, type Init } from "../../nn/bind.js";
import { Tensor } from "../../tensor.js";
import { camelCase, snakeCase } from "../optimizer.js";
import {
  checkNumbers,
  restore,
  savedEntries,
  checkOptimizer,
  groupsOf,
  type Scheduled,
  type ScheduledGroup,
  type SchedulerState,
} from "./base.js";

export interface PlateauOptions {
  /** Whether a smaller or a larger metric is better. */
  mode?: "min" | "max";
  factor?: number;
  /** Steps without improvement that are put up with. */
  patience?: number;
  threshold?: number;
  /** Whether the threshold is a share of the best metric or an amount. */
  thresholdMode?: "rel" | "abs";
  /** Steps after a reduction in which nothing is counted. */
  cooldown?: number;
  minLr?: number | readonly number[];
  eps?: number;
}

/** Lowers the learning rates when a metric has stopped improving. */
export class ReduceLROnPlateau {
  lastEpoch = 0;
  best: number;
  numBadEpochs = 0;
  cooldownCounter = 0;
  private readonly options: Required<PlateauOptions>;
  constructor(
    readonly optimizer: Scheduled,
    ...args: Init<[], [mode: "min" | "max", factor: number, patience: number], PlateauOptions>
  ) {
    checkOptimizer("ReduceLROnPlateau", optimizer);
    const o = bind<Required<PlateauOptions>>("ReduceLROnPlateau", args, [], {
      mode: "min",
      factor: 0.1,
      patience: 10,
      threshold: 1e-4,
      thresholdMode: "rel",
      cooldown: 0,
      minLr: 0,
      eps: 1e-8,
    });
    const numbers = ["factor", "patience", "threshold", "cooldown", "eps"];
    checkNumbers("ReduceLROnPlateau", o, numbers);
    if (o.mode !== "min" && o.mode !== "max") {
      const given = describe(o.mode);
      throw new ValueError(`ReduceLROnPlateau: expected mode "min" or "max", got ${given}`);
    }
    if (!(o.factor < 1)) {
      throw new ValueError(`ReduceLROnPlateau: expected a factor below 1, got ${o.factor}`);
    }
    const groups = optimizer.paramGroups.length;
    const minLr = floatTuple(o.minLr, groups, "ReduceLROnPlateau", "minLr");
    if (minLr.length !== groups) {
      throw new ValueError(
        `ReduceLROnPlateau: expected ${groups} values for minLr, got ${minLr.length}`,
      );
    }
    this.options = { ...o, minLr: Array.isArray(o.minLr) ? minLr : minLr[0]! };
    this.best = o.mode === "min" ? Infinity : -Infinity;
  }

  private isBetter(metric: number): boolean {
    const { mode, threshold, thresholdMode } = this.options;
    if (mode === "min") {
      const bar = thresholdMode === "rel" ? this.best * (1 - threshold) : this.best - threshold;
      return metric < bar;
    }
    const bar = thresholdMode === "rel" ? this.best * (1 + threshold) : this.best + threshold;
    return metric > bar;
  }
  /** Takes the metric of another epoch in. */
  step(metric: number | Tensor): void {
    const given: unknown = metric instanceof Tensor ? metric.item() : metric;
    const value = float(given, "ReduceLROnPlateau", "metric");
    this.lastEpoch += 1;
    if (this.isBetter(value)) {
      this.best = value;
      this.numBadEpochs = 0;
    } else this.numBadEpochs += 1;
    if (this.cooldownCounter > 0) {
      this.cooldownCounter -= 1;
      this.numBadEpochs = 0;
    }
    if (this.numBadEpochs <= this.options.patience) return;
    groupsOf(this.optimizer).forEach((group, i) => this.reduce(group, i));
    this.cooldownCounter = this.options.cooldown;
    this.numBadEpochs = 0;
  }
  private reduce(group: ScheduledGroup, i: number): void {
    const { minLr, factor, eps } = this.options;
    const least = typeof minLr === "number" ? minLr : minLr[i]!;
    const lower = Math.max(group.lr * factor, least);
    if (group.lr - lower > eps) group.lr = lower;
  }
  getLastLr(): number[] {
    return groupsOf(this.optimizer).map((group) => group.lr);
  }
  stateDict(): SchedulerState {
    const { lastEpoch, best, numBadEpochs, cooldownCounter } = this;
    const all = { ...this.options, lastEpoch, best, numBadEpochs, cooldownCounter };
    return Object.fromEntries(Object.entries(all).map(([key, value]) => [snakeCase(key), value]));
  }
  loadStateDict(state: SchedulerState): void {
    for (const [key, value] of savedEntries("ReduceLROnPlateau", state)) {
      const name = camelCase(key);
      if (name in this.options) restore("ReduceLROnPlateau", this.options, name, value);
      else if (name in this) restore("ReduceLROnPlateau", this, name, value);
    }
  }
}
