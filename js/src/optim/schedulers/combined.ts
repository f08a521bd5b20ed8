// Schedules made of schedules.
import { describe } from "../../dtype.js";
import { TypeError_, ValueError } from "../../errors.js";
import { int } from "../../frame.js";
import { items } from "../../nn/bind.js";
import {
  checkOptimizer,
  checkSchedulers,
  groupsOf,
  restore,
  savedEntries,
  type LRScheduler,
  type Scheduled,
  type SchedulerState,
} from "./base.js";

function loadEach(name: string, schedulers: readonly LRScheduler[], state: SchedulerState): void {
  const states = items(state["_schedulers"] as SchedulerState[], name, "_schedulers");
  schedulers.forEach((scheduler, i) => scheduler.loadStateDict(states[i]!));
}

/** One schedule after the other, each from its milestone on. */
export class SequentialLR {
  lastEpoch: number;
  constructor(
    readonly optimizer: Scheduled,
    readonly schedulers: readonly LRScheduler[],
    readonly milestones: readonly number[],
    lastEpoch = -1,
  ) {
    checkOptimizer("SequentialLR", optimizer);
    checkSchedulers("SequentialLR", schedulers);
    if (!Array.isArray(milestones)) {
      const given = describe(milestones);
      throw new TypeError_(`SequentialLR: expected a list of milestones, got ${given}`);
    }
    for (const milestone of milestones) int(milestone, "SequentialLR", "milestones");
    if (schedulers.length === 0 || milestones.length !== schedulers.length - 1) {
      throw new ValueError(
        `SequentialLR: expected one milestone less than schedulers, ` +
          `got ${milestones.length} and ${schedulers.length}`,
      );
    }
    if (schedulers.some((scheduler) => scheduler.optimizer !== optimizer)) {
      throw new ValueError("SequentialLR: expected schedulers of the given optimizer");
    }
    this.lastEpoch = int(lastEpoch, "SequentialLR", "lastEpoch") + 1;
    // Every schedule made its first step when it was made; only the first one shall have.
    for (const group of groupsOf(optimizer)) group.lr = group.initialLr ?? group.lr;
    for (const scheduler of schedulers) scheduler._rewind();
    schedulers[0]!.step();
  }
  private active(): number {
    return this.milestones.filter((milestone) => milestone <= this.lastEpoch).length;
  }
  step(): void {
    this.lastEpoch += 1;
    const at = this.active();
    const starts = at > 0 && this.milestones[at - 1] === this.lastEpoch;
    this.schedulers[at]!.step(starts ? 0 : undefined);
  }
  getLastLr(): number[] {
    return groupsOf(this.optimizer).map((group) => group.lr);
  }
  stateDict(): SchedulerState {
    return {
      last_epoch: this.lastEpoch,
      _schedulers: this.schedulers.map((scheduler) => scheduler.stateDict()),
    };
  }
  loadStateDict(state: SchedulerState): void {
    savedEntries("SequentialLR", state);
    restore("SequentialLR", this, "lastEpoch", state["last_epoch"]);
    loadEach("SequentialLR", this.schedulers, state);
  }
}

/** Several schedules at once: each changes what the one before it left. */
export class ChainedScheduler {
  constructor(readonly schedulers: readonly LRScheduler[]) {
    checkSchedulers("ChainedScheduler", schedulers);
    if (schedulers.length === 0) throw new ValueError("ChainedScheduler: got no schedulers");
  }
  step(): void {
    for (const scheduler of this.schedulers) scheduler.step();
  }
  getLastLr(): number[] {
    return groupsOf(this.schedulers[0]!.optimizer).map((group) => group.lr);
  }
  stateDict(): SchedulerState {
    return { _schedulers: this.schedulers.map((scheduler) => scheduler.stateDict()) };
  }
  loadStateDict(state: SchedulerState): void {
    savedEntries("ChainedScheduler", state);
    loadEach("ChainedScheduler", this.schedulers, state);
  }
}
