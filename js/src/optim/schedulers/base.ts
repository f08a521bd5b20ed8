// The base of schedules: counts steps and sets the learning rates of an optimizer's groups.
import { TypeError_, ValueError } from "../../errors.js";
import { describe } from "../../dtype.js";
import { float, int } from "../../frame.js";
import { camelCase, Optimizer, snakeCase } from "../optimizer.js";

/** A group, as far as schedules know it. */
export interface ScheduledGroup {
  lr: number;
  initialLr?: number;
  momentum?: number;
  betas?: readonly [number, number];
}

/** An optimizer with learning rates. */
export interface Scheduled {
  readonly paramGroups: readonly object[];
}

/** The state of a schedule under PyTorch's names. */
export type SchedulerState = Record<string, unknown>;

export function groupsOf(optimizer: Scheduled): ScheduledGroup[] {
  return optimizer.paramGroups as unknown as ScheduledGroup[];
}

export function checkOptimizer(name: string, optimizer: unknown): void {
  if (optimizer instanceof Optimizer) return;
  throw new TypeError_(`${name}: expected an Optimizer, got ${describe(optimizer)}`);
}

/** Takes the options called `keys` as numbers; others are refused. */
export function checkNumbers(name: string, options: object, keys: readonly string[]): void {
  const o = options as Record<string, unknown>;
  for (const key of keys) o[key] = float(o[key], name, key);
}

// Whether a saved value is of the kind of the present one.
function fits(now: unknown, saved: unknown): boolean {
  if (now === undefined || now === null) return typeof saved !== "function";
  if (Array.isArray(now)) {
    if (!Array.isArray(saved) || (saved.length === 0) !== (now.length === 0)) return false;
    return saved.every((item) => fits(now[0], item));
  }
  if (saved === null || typeof saved !== typeof now || typeof now === "function") return false;
  if (typeof now !== "object") return true;
  return Object.entries(now).every(([key, value]) =>
    fits(value, (saved as Record<string, unknown>)[key]),
  );
}

/** The members of a saved state. */
export function savedEntries(name: string, state: unknown): [string, unknown][] {
  if (typeof state === "object" && state !== null) return Object.entries(state);
  throw new TypeError_(`${name}: expected a saved state, got ${describe(state)}`);
}

/** Takes a saved value on in the place of the present one. */
export function restore(name: string, at: object, field: string, saved: unknown): void {
  const fields = at as Record<string, unknown>;
  if (!fits(fields[field], saved)) {
    throw new TypeError_(
      `${name}: expected another kind of saved ${field}, got ${describe(saved)}`,
    );
  }
  fields[field] = structuredClone(saved);
}

/** The list of schedules that another one is made of. */
export function checkSchedulers(name: string, schedulers: unknown): void {
  if (!Array.isArray(schedulers)) {
    throw new TypeError_(`${name}: expected a list of schedulers, got ${describe(schedulers)}`);
  }
  const odd = schedulers.findIndex((scheduler) => !(scheduler instanceof LRScheduler));
  if (odd < 0) return;
  const given = describe(schedulers[odd]);
  throw new TypeError_(`${name}: expected LRSchedulers, got ${given}`);
}

/** Sets learning rates: once when it is made, then at every `step()`, after the optimizer's. */
export abstract class LRScheduler {
  /** Steps taken so far. */
  lastEpoch: number;
  baseLrs: number[];
  protected lastLr: number[] = [];

  constructor(
    readonly optimizer: Scheduled,
    lastEpoch = -1,
  ) {
    const { name } = this.constructor;
    checkOptimizer(name, optimizer);
    for (const group of groupsOf(optimizer)) {
      if (lastEpoch === -1) group.initialLr ??= group.lr;
      else if (group.initialLr === undefined) {
        throw new ValueError(`${name}: resuming at ${lastEpoch} needs initialLr in every group`);
      }
    }
    this.baseLrs = groupsOf(optimizer).map((group) => group.initialLr!);
    this.lastEpoch = int(lastEpoch, name, "lastEpoch");
  }
  /** Sets the first learning rates; the end of every constructor. */
  protected begin(): void {
    this.step();
  }

  /** The learning rates at `lastEpoch`, from the present ones. */
  protected abstract next(group: ScheduledGroup, base: number, index: number): number;
  /** The same from the base rates alone, for a jump; by default schedules need no other rule. */
  protected closed(group: ScheduledGroup, base: number, index: number): number {
    return this.next(group, base, index);
  }

  /** Goes one step on, or to step `epoch`. */
  step(epoch?: number): void {
    const groups = groupsOf(this.optimizer);
    this.lastEpoch =
      epoch === undefined ? this.lastEpoch + 1 : float(epoch, this.constructor.name, "epoch");
    const rates = groups.map((group, i) =>
      epoch === undefined
        ? this.next(group, this.baseLrs[i]!, i)
        : this.closed(group, this.baseLrs[i]!, i),
    );
    groups.forEach((group, i) => (group.lr = rates[i]!));
    this.lastLr = rates;
  }
  /** The learning rates that the last step set. */
  getLastLr(): number[] {
    return [...this.lastLr];
  }
  /** @internal Takes back the first step, for a schedule that starts later. */
  _rewind(): void {
    this.lastEpoch -= 1;
  }

  /** Numbers and lists of the schedule, not its functions. */
  stateDict(): SchedulerState {
    const entries = Object.entries(this).filter(
      ([key, value]) => key !== "optimizer" && typeof value !== "function",
    );
    return Object.fromEntries(
      entries.map(([key, value]) => [snakeCase(key), structuredClone(value as unknown)]),
    );
  }
  loadStateDict(state: SchedulerState): void {
    const { name } = this.constructor;
    for (const [key, value] of savedEntries(name, state)) {
      const field = key in this ? key : camelCase(key);
      if (field !== "optimizer") restore(name, this, field, value);
    }
  }
}
