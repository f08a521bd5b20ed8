// Schedules that are a formula of the number of steps.
import { describe } from "../../dtype.js";
import { TypeError_, ValueError } from "../../errors.js";
import { bind, floatTuple, items, type Init } from "../../nn/bind.js";
import { checkNumbers, LRScheduler, type Scheduled, type ScheduledGroup } from "./base.js";

type Lambda = (epoch: number) => number;

interface Last {
  /** The step to resume after (default -1: from the start). */
  lastEpoch?: number;
}

function lambdas(name: string, given: Lambda | readonly Lambda[], groups: number): Lambda[] {
  const list =
    typeof given === "function"
      ? Array<Lambda>(groups).fill(given)
      : items(given, name, "lrLambda");
  const odd = list.find((lambda) => typeof lambda !== "function");
  if (list.length > 0 && odd !== undefined) {
    throw new TypeError_(`${name}: expected functions, got ${describe(odd)}`);
  }
  if (list.length === groups) return list;
  throw new ValueError(`${name}: expected ${groups} functions, got ${list.length}`);
}

/** The base rate times a function of the step. */
export class LambdaLR extends LRScheduler {
  private readonly lambdas: Lambda[];
  constructor(optimizer: Scheduled, lrLambda: Lambda | readonly Lambda[], lastEpoch = -1) {
    super(optimizer, lastEpoch);
    this.lambdas = lambdas("LambdaLR", lrLambda, this.baseLrs.length);
    this.begin();
  }
  protected next(_: ScheduledGroup, base: number, i: number): number {
    return base * this.lambdas[i]!(this.lastEpoch);
  }
  override stateDict(): Record<string, unknown> {
    return { last_epoch: this.lastEpoch, base_lrs: [...this.baseLrs] };
  }
}

/** The present rate times a function of the step. */
export class MultiplicativeLR extends LRScheduler {
  private readonly lambdas: Lambda[];
  constructor(optimizer: Scheduled, lrLambda: Lambda | readonly Lambda[], lastEpoch = -1) {
    super(optimizer, lastEpoch);
    this.lambdas = lambdas("MultiplicativeLR", lrLambda, this.baseLrs.length);
    this.begin();
  }
  protected next({ lr }: ScheduledGroup, _: number, i: number): number {
    return this.lastEpoch > 0 ? lr * this.lambdas[i]!(this.lastEpoch) : lr;
  }
  override stateDict(): Record<string, unknown> {
    return { last_epoch: this.lastEpoch, base_lrs: [...this.baseLrs] };
  }
}

/** Times gamma every stepSize steps. */
export class StepLR extends LRScheduler {
  readonly stepSize: number;
  readonly gamma: number;
  constructor(
    optimizer: Scheduled,
    ...args: Init<[stepSize: number], [gamma: number], Last & { gamma?: number }>
  ) {
    const o = bind<{ stepSize: number; gamma: number; lastEpoch: number }>(
      "StepLR",
      args,
      ["stepSize"],
      { gamma: 0.1, lastEpoch: -1 },
    );
    super(optimizer, o.lastEpoch);
    checkNumbers("StepLR", o, ["stepSize", "gamma"]);
    this.stepSize = o.stepSize;
    this.gamma = o.gamma;
    this.begin();
  }
  protected next({ lr }: ScheduledGroup): number {
    const due = this.lastEpoch > 0 && this.lastEpoch % this.stepSize === 0;
    return due ? lr * this.gamma : lr;
  }
  protected override closed(_: ScheduledGroup, base: number): number {
    return base * this.gamma ** Math.floor(this.lastEpoch / this.stepSize);
  }
}

/** Times gamma at each milestone. */
export class MultiStepLR extends LRScheduler {
  readonly milestones: readonly number[];
  readonly gamma: number;
  constructor(
    optimizer: Scheduled,
    ...args: Init<[milestones: readonly number[]], [gamma: number], Last & { gamma?: number }>
  ) {
    const o = bind<{ milestones: number[]; gamma: number; lastEpoch: number }>(
      "MultiStepLR",
      args,
      ["milestones"],
      { gamma: 0.1, lastEpoch: -1 },
    );
    super(optimizer, o.lastEpoch);
    checkNumbers("MultiStepLR", o, ["gamma"]);
    const milestones = items(o.milestones, "MultiStepLR", "milestones");
    this.milestones = floatTuple(milestones, 1, "MultiStepLR", "milestones").sort((a, b) => a - b);
    this.gamma = o.gamma;
    this.begin();
  }
  protected next({ lr }: ScheduledGroup): number {
    return lr * this.gamma ** this.milestones.filter((m) => m === this.lastEpoch).length;
  }
  protected override closed(_: ScheduledGroup, base: number): number {
    return base * this.gamma ** this.milestones.filter((m) => m <= this.lastEpoch).length;
  }
}

/** A constant factor for the first totalIters steps. */
export class ConstantLR extends LRScheduler {
  readonly factor: number;
  readonly totalIters: number;
  constructor(
    optimizer: Scheduled,
    ...args: Init<
      [],
      [factor: number, totalIters: number],
      Last & { factor?: number; totalIters?: number }
    >
  ) {
    const defaults = { factor: 1 / 3, totalIters: 5, lastEpoch: -1 };
    const o = bind<typeof defaults>("ConstantLR", args, [], defaults);
    checkNumbers("ConstantLR", o, ["factor", "totalIters"]);
    if (!(o.factor >= 0 && o.factor <= 1)) {
      throw new ValueError(`ConstantLR: expected a factor in [0, 1], got ${o.factor}`);
    }
    super(optimizer, o.lastEpoch);
    this.factor = o.factor;
    this.totalIters = o.totalIters;
    this.begin();
  }
  protected next({ lr }: ScheduledGroup): number {
    if (this.lastEpoch === 0) return lr * this.factor;
    return this.lastEpoch === this.totalIters ? lr / this.factor : lr;
  }
  protected override closed(_: ScheduledGroup, base: number): number {
    return this.lastEpoch < this.totalIters ? base * this.factor : base;
  }
}

/** A factor that goes from startFactor to endFactor in totalIters steps. */
export class LinearLR extends LRScheduler {
  readonly startFactor: number;
  readonly endFactor: number;
  readonly totalIters: number;
  constructor(
    optimizer: Scheduled,
    ...args: Init<
      [],
      [startFactor: number, endFactor: number, totalIters: number],
      Last & { startFactor?: number; endFactor?: number; totalIters?: number }
    >
  ) {
    const defaults = { startFactor: 1 / 3, endFactor: 1, totalIters: 5, lastEpoch: -1 };
    const o = bind<typeof defaults>("LinearLR", args, [], defaults);
    checkNumbers("LinearLR", o, ["startFactor", "endFactor", "totalIters"]);
    if (!(o.startFactor > 0 && o.startFactor <= 1)) {
      throw new ValueError(`LinearLR: expected startFactor in (0, 1], got ${o.startFactor}`);
    }
    super(optimizer, o.lastEpoch);
    this.startFactor = o.startFactor;
    this.endFactor = o.endFactor;
    this.totalIters = o.totalIters;
    this.begin();
  }
  protected next({ lr }: ScheduledGroup): number {
    const { lastEpoch: t, totalIters, startFactor, endFactor } = this;
    if (t === 0) return lr * startFactor;
    if (t > totalIters) return lr;
    const rise = endFactor - startFactor;
    return lr * (1 + rise / (totalIters * startFactor + (t - 1) * rise));
  }
  protected override closed(_: ScheduledGroup, base: number): number {
    const share = Math.min(this.totalIters, this.lastEpoch) / this.totalIters;
    return base * (this.startFactor + (this.endFactor - this.startFactor) * share);
  }
}

/** Times gamma every step. */
export class ExponentialLR extends LRScheduler {
  readonly gamma: number;
  constructor(optimizer: Scheduled, ...args: Init<[gamma: number], [], Last>) {
    const o = bind<{ gamma: number; lastEpoch: number }>("ExponentialLR", args, ["gamma"], {
      lastEpoch: -1,
    });
    super(optimizer, o.lastEpoch);
    checkNumbers("ExponentialLR", o, ["gamma"]);
    this.gamma = o.gamma;
    this.begin();
  }
  protected next({ lr }: ScheduledGroup): number {
    return this.lastEpoch === 0 ? lr : lr * this.gamma;
  }
  protected override closed(_: ScheduledGroup, base: number): number {
    return base * this.gamma ** this.lastEpoch;
  }
}

/** To zero in totalIters steps, as a power of what is left. */
export class PolynomialLR extends LRScheduler {
  readonly totalIters: number;
  readonly power: number;
  constructor(
    optimizer: Scheduled,
    ...args: Init<
      [],
      [totalIters: number, power: number],
      Last & { totalIters?: number; power?: number }
    >
  ) {
    const defaults = { totalIters: 5, power: 1, lastEpoch: -1 };
    const o = bind<typeof defaults>("PolynomialLR", args, [], defaults);
    checkNumbers("PolynomialLR", o, ["totalIters", "power"]);
    super(optimizer, o.lastEpoch);
    this.totalIters = o.totalIters;
    this.power = o.power;
    this.begin();
  }
  protected next({ lr }: ScheduledGroup): number {
    const { lastEpoch: t, totalIters: n, power } = this;
    if (t === 0 || t > n) return lr;
    return lr * ((1 - t / n) / (1 - (t - 1) / n)) ** power;
  }
  protected override closed(_: ScheduledGroup, base: number): number {
    const left = 1 - Math.min(this.totalIters, this.lastEpoch) / this.totalIters;
    return base * left ** this.power;
  }
}
