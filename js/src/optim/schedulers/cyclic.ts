// Schedules of waves: cosine annealing, cyclic and one-cycle.
import { describe } from "../../dtype.js";
import { ValueError } from "../../errors.js";
import { float } from "../../frame.js";
import { bind, floatTuple, type Init } from "../../nn/bind.js";
import {
  checkNumbers,
  checkOptimizer,
  groupsOf,
  LRScheduler,
  type Scheduled,
  type ScheduledGroup,
} from "./base.js";

/** Half a cosine from the base rate to etaMin in T_max steps; Loshchilov and Hutter (2017). */
export class CosineAnnealingLR extends LRScheduler {
  readonly T_max: number;
  readonly etaMin: number;
  constructor(
    optimizer: Scheduled,
    ...args: Init<[T_max: number], [etaMin: number], { etaMin?: number; lastEpoch?: number }>
  ) {
    const o = bind<{ T_max: number; etaMin: number; lastEpoch: number }>(
      "CosineAnnealingLR",
      args,
      ["T_max"],
      { etaMin: 0, lastEpoch: -1 },
    );
    super(optimizer, o.lastEpoch);
    checkNumbers("CosineAnnealingLR", o, ["T_max", "etaMin"]);
    this.T_max = o.T_max;
    this.etaMin = o.etaMin;
    this.begin();
  }
  protected next({ lr }: ScheduledGroup, base: number): number {
    const { lastEpoch: t, T_max, etaMin } = this;
    if (t === 0) return lr;
    const angle = Math.PI / T_max;
    if ((t - 1 - T_max) % (2 * T_max) === 0) {
      return lr + ((base - etaMin) * (1 - Math.cos(angle))) / 2;
    }
    const ratio = (1 + Math.cos(angle * t)) / (1 + Math.cos(angle * (t - 1)));
    return ratio * (lr - etaMin) + etaMin;
  }
  protected override closed(_: ScheduledGroup, base: number): number {
    const wave = (1 + Math.cos((Math.PI * this.lastEpoch) / this.T_max)) / 2;
    return this.etaMin + (base - this.etaMin) * wave;
  }
}

/** Cosine annealing that starts anew after T_0 steps, then T_0 · T_mult, and so on. */
export class CosineAnnealingWarmRestarts extends LRScheduler {
  readonly T_0: number;
  readonly T_mult: number;
  readonly etaMin: number;
  /** Length of the present period, and steps into it. */
  T_i: number;
  T_cur: number;
  constructor(
    optimizer: Scheduled,
    ...args: Init<
      [T_0: number],
      [T_mult: number, etaMin: number],
      { T_mult?: number; etaMin?: number; lastEpoch?: number }
    >
  ) {
    const o = bind<{ T_0: number; T_mult: number; etaMin: number; lastEpoch: number }>(
      "CosineAnnealingWarmRestarts",
      args,
      ["T_0"],
      { T_mult: 1, etaMin: 0, lastEpoch: -1 },
    );
    if (!(Number.isInteger(o.T_0) && o.T_0 > 0 && Number.isInteger(o.T_mult) && o.T_mult > 0)) {
      throw new ValueError(
        `CosineAnnealingWarmRestarts: expected positive integers T_0 and T_mult, ` +
          `got ${describe(o.T_0)} and ${describe(o.T_mult)}`,
      );
    }
    super(optimizer, o.lastEpoch);
    checkNumbers("CosineAnnealingWarmRestarts", o, ["etaMin"]);
    this.T_0 = o.T_0;
    this.T_mult = o.T_mult;
    this.etaMin = o.etaMin;
    this.T_i = o.T_0;
    this.T_cur = this.lastEpoch;
    this.begin();
  }
  override step(epoch?: number): void {
    if (epoch === undefined) {
      this.T_cur += 1;
      if (this.T_cur >= this.T_i) {
        this.T_cur -= this.T_i;
        this.T_i *= this.T_mult;
      }
    } else {
      const to = float(epoch, "CosineAnnealingWarmRestarts", "epoch");
      if (!(to >= 0 && to < Infinity)) {
        throw new ValueError(`CosineAnnealingWarmRestarts: expected an epoch ≥ 0, got ${to}`);
      }
      this.T_i = this.T_0;
      // Periods of one length are left out at once: there may be very many.
      this.T_cur = this.T_mult === 1 ? to % this.T_0 : to;
      while (this.T_cur >= this.T_i) {
        this.T_cur -= this.T_i;
        this.T_i *= this.T_mult;
      }
    }
    super.step(epoch);
  }
  protected next(_: ScheduledGroup, base: number): number {
    const wave = (1 + Math.cos((Math.PI * this.T_cur) / this.T_i)) / 2;
    return this.etaMin + (base - this.etaMin) * wave;
  }
}

function perGroup(name: string, x: number | readonly number[], groups: number): number[] {
  const list = floatTuple(x, groups, name, "learning rates");
  if (list.length === groups) return list;
  throw new ValueError(`${name}: expected ${groups} values, got ${list.length}`);
}

// Momentum is the option of that name, or the first of Adam's betas.
function setMomentum(group: ScheduledGroup, value: number): void {
  if (group.betas) group.betas = [value, group.betas[1]];
  else group.momentum = value;
}

function checkMomentum(name: string, optimizer: Scheduled): void {
  const fits = groupsOf(optimizer).every((g) => g.betas !== undefined || g.momentum !== undefined);
  if (!fits) {
    throw new ValueError(`${name}: cycleMomentum needs an optimizer with momentum or betas`);
  }
}

export interface CyclicOptions {
  baseLr: number | readonly number[];
  maxLr: number | readonly number[];
  stepSizeUp?: number;
  stepSizeDown?: number | null;
  mode?: "triangular" | "triangular2" | "exp_range";
  gamma?: number;
  scaleFn?: ((x: number) => number) | null;
  scaleMode?: "cycle" | "iterations";
  cycleMomentum?: boolean;
  baseMomentum?: number;
  maxMomentum?: number;
  lastEpoch?: number;
}

/** Smith, "Cyclical learning rates" (2017). */
export class CyclicLR extends LRScheduler {
  readonly maxLrs: number[];
  readonly totalSize: number;
  readonly stepRatio: number;
  readonly cycleMomentum: boolean;
  private readonly momenta: readonly [base: number, max: number];
  private readonly scale: (x: number) => number;
  private readonly scaleMode: "cycle" | "iterations";
  constructor(
    optimizer: Scheduled,
    ...args:
      | [options: CyclicOptions]
      | Init<[baseLr: number, maxLr: number], [stepSizeUp: number], Partial<CyclicOptions>>
  ) {
    const o = bind<Required<CyclicOptions>>("CyclicLR", args, ["baseLr", "maxLr"], {
      stepSizeUp: 2000,
      stepSizeDown: null,
      mode: "triangular",
      gamma: 1,
      scaleFn: null,
      scaleMode: "cycle",
      cycleMomentum: true,
      baseMomentum: 0.8,
      maxMomentum: 0.9,
      lastEpoch: -1,
    });
    checkOptimizer("CyclicLR", optimizer);
    const numbers = ["stepSizeUp", "gamma", "baseMomentum", "maxMomentum"];
    checkNumbers("CyclicLR", o, o.stepSizeDown === null ? numbers : [...numbers, "stepSizeDown"]);
    if (o.scaleFn !== null && typeof o.scaleFn !== "function") {
      throw new ValueError(`CyclicLR: expected a function as scaleFn, got ${describe(o.scaleFn)}`);
    }
    const groups = groupsOf(optimizer);
    const bases = perGroup("CyclicLR", o.baseLr, groups.length);
    if (o.lastEpoch === -1) groups.forEach((group, i) => (group.lr = bases[i]!));
    if (o.cycleMomentum) checkMomentum("CyclicLR", optimizer);
    super(optimizer, o.lastEpoch);
    this.baseLrs = bases;
    this.maxLrs = perGroup("CyclicLR", o.maxLr, groups.length);
    this.totalSize = o.stepSizeUp + (o.stepSizeDown ?? o.stepSizeUp);
    this.stepRatio = o.stepSizeUp / this.totalSize;
    this.cycleMomentum = o.cycleMomentum;
    this.momenta = [o.baseMomentum, o.maxMomentum];
    this.scaleMode = o.scaleFn ? o.scaleMode : o.mode === "exp_range" ? "iterations" : "cycle";
    this.scale = o.scaleFn ?? scaleOf(o.mode, o.gamma);
    this.begin();
  }
  protected next(group: ScheduledGroup, base: number, i: number): number {
    const { lastEpoch: t, totalSize, stepRatio } = this;
    const cycle = Math.floor(1 + t / totalSize);
    const x = 1 + t / totalSize - cycle;
    const height = x <= stepRatio ? x / stepRatio : (x - 1) / (stepRatio - 1);
    const factor = height * this.scale(this.scaleMode === "cycle" ? cycle : t);
    const [low, high] = this.momenta;
    if (this.cycleMomentum) setMomentum(group, high - (high - low) * factor);
    return base + (this.maxLrs[i]! - base) * factor;
  }
}

function scaleOf(mode: string, gamma: number): (x: number) => number {
  switch (mode) {
    case "triangular":
      return () => 1;
    case "triangular2":
      return (x) => 1 / 2 ** (x - 1);
    case "exp_range":
      return (x) => gamma ** x;
    default:
      throw new ValueError(
        `CyclicLR: expected mode "triangular", "triangular2" or "exp_range", got ${describe(mode)}`,
      );
  }
}

export interface OneCycleOptions {
  maxLr: number | readonly number[];
  totalSteps?: number | null;
  epochs?: number | null;
  stepsPerEpoch?: number | null;
  pctStart?: number;
  annealStrategy?: "cos" | "linear";
  cycleMomentum?: boolean;
  baseMomentum?: number;
  maxMomentum?: number;
  divFactor?: number;
  finalDivFactor?: number;
  threePhase?: boolean;
  lastEpoch?: number;
}

type Level = "initial" | "max" | "min";
interface Phase {
  readonly end: number;
  readonly lr: readonly [from: Level, to: Level];
  readonly momentum: readonly [from: "max" | "base", to: "max" | "base"];
}

function totalStepsOf(o: Required<OneCycleOptions>): number {
  const read = (key: "totalSteps" | "epochs" | "stepsPerEpoch") =>
    o[key] === null ? NaN : float(o[key], "OneCycleLR", key);
  const steps = o.totalSteps === null ? read("epochs") * read("stepsPerEpoch") : read("totalSteps");
  if (Number.isInteger(steps) && steps > 0) return steps;
  throw new ValueError(
    `OneCycleLR: expected a positive totalSteps, or epochs and stepsPerEpoch, got ${steps}`,
  );
}

/** Smith and Topin, "Super-convergence" (2018): up once, then down far below the start. */
export class OneCycleLR extends LRScheduler {
  readonly totalSteps: number;
  private readonly phases: Phase[];
  private readonly rates: Record<Level, number>[];
  private readonly momenta: { base: number; max: number } | null;
  private readonly anneal: (from: number, to: number, share: number) => number;
  constructor(
    optimizer: Scheduled,
    ...args:
      | [options: OneCycleOptions]
      | Init<[maxLr: number], [totalSteps: number], Partial<OneCycleOptions>>
  ) {
    const o = bind<Required<OneCycleOptions>>("OneCycleLR", args, ["maxLr"], {
      totalSteps: null,
      epochs: null,
      stepsPerEpoch: null,
      pctStart: 0.3,
      annealStrategy: "cos",
      cycleMomentum: true,
      baseMomentum: 0.85,
      maxMomentum: 0.95,
      divFactor: 25,
      finalDivFactor: 1e4,
      threePhase: false,
      lastEpoch: -1,
    });
    checkOptimizer("OneCycleLR", optimizer);
    const numbers = ["pctStart", "baseMomentum", "maxMomentum", "divFactor", "finalDivFactor"];
    checkNumbers("OneCycleLR", o, numbers);
    const totalSteps = totalStepsOf(o);
    if (!(o.pctStart >= 0 && o.pctStart <= 1)) {
      throw new ValueError(`OneCycleLR: expected pctStart in [0, 1], got ${o.pctStart}`);
    }
    const groups = groupsOf(optimizer);
    const rates = perGroup("OneCycleLR", o.maxLr, groups.length).map((max) => {
      const initial = max / o.divFactor;
      return { initial, max, min: initial / o.finalDivFactor };
    });
    if (o.lastEpoch === -1) groups.forEach((group, i) => (group.lr = rates[i]!.initial));
    if (o.cycleMomentum) checkMomentum("OneCycleLR", optimizer);
    super(optimizer, o.lastEpoch);
    this.totalSteps = totalSteps;
    this.rates = rates;
    this.momenta = o.cycleMomentum ? { base: o.baseMomentum, max: o.maxMomentum } : null;
    this.phases = phasesOf(totalSteps, o.pctStart, o.threePhase);
    this.anneal = o.annealStrategy === "linear" ? linear : cosine;
    this.begin();
  }
  protected next(group: ScheduledGroup, _: number, i: number): number {
    const t = this.lastEpoch;
    if (t > this.totalSteps) {
      throw new ValueError(
        `OneCycleLR: tried to step ${t} times; the total number of steps is ${this.totalSteps}`,
      );
    }
    const found = this.phases.findIndex((phase) => t <= phase.end);
    const at = found < 0 ? this.phases.length - 1 : found;
    const { end, lr, momentum } = this.phases[at]!;
    const start = at === 0 ? 0 : this.phases[at - 1]!.end;
    const share = (t - start) / (end - start);
    const rates = this.rates[i]!;
    if (this.momenta) {
      const [from, to] = momentum;
      setMomentum(group, this.anneal(this.momenta[from], this.momenta[to], share));
    }
    return this.anneal(rates[lr[0]], rates[lr[1]], share);
  }
}

function phasesOf(steps: number, pct: number, three: boolean): Phase[] {
  const up: Phase = { end: pct * steps - 1, lr: ["initial", "max"], momentum: ["max", "base"] };
  if (!three) return [up, { end: steps - 1, lr: ["max", "min"], momentum: ["base", "max"] }];
  return [
    up,
    { end: 2 * pct * steps - 2, lr: ["max", "initial"], momentum: ["base", "max"] },
    { end: steps - 1, lr: ["initial", "min"], momentum: ["max", "max"] },
  ];
}

function cosine(from: number, to: number, share: number): number {
  return to + ((from - to) / 2) * (1 + Math.cos(Math.PI * share));
}

function linear(from: number, to: number, share: number): number {
  return from + (to - from) * share;
}
