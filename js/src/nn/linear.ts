// Linear layers and those that only change the shape.
import type { Tensor } from "../tensor.js";
import { checkTensor, int, isOptions } from "../frame.js";
import * as ops from "../ops.gen.js";
import { bind, placed, factory, py, tuple, type Factory, type Init } from "./bind.js";
import { functional } from "./functional_lookup.js";
import { layerInit, uniform_ } from "./init.js";
import { Module } from "./module.js";
import { Parameter } from "./parameter.js";

const linear = functional("linear");
const bilinear = functional("bilinear");
const flatten = functional("flatten");

/** An uninitialised parameter. */
export function parameter(shape: readonly number[], o: Factory): Parameter {
  return new Parameter(ops.empty(shape, placed(o)));
}

/** Passes its input on; arguments of the constructor are ignored. */
export class Identity extends Module {
  constructor(...ignored: unknown[]) {
    super();
    void ignored;
  }
  forward(input: Tensor): Tensor {
    return input;
  }
}

export interface LinearOptions extends Factory {
  bias?: boolean;
}

/** input [..., inFeatures] → [..., outFeatures]: input · weightᵀ + bias. */
export class Linear extends Module<[Tensor | { input: Tensor }], Tensor> {
  readonly inFeatures: number;
  readonly outFeatures: number;
  weight: Parameter;
  bias: Parameter | null;

  constructor(
    ...args: Init<[inFeatures: number, outFeatures: number], [bias: boolean], LinearOptions>
  ) {
    super();
    const o = bind<{ inFeatures: number; outFeatures: number; bias: boolean } & Factory>(
      "Linear",
      args,
      ["inFeatures", "outFeatures"],
      { bias: true, ...factory },
    );
    this.inFeatures = o.inFeatures;
    this.outFeatures = o.outFeatures;
    this.weight = parameter([o.outFeatures, o.inFeatures], o);
    this.bias = o.bias ? parameter([o.outFeatures], o) : null;
    this.resetParameters();
  }
  resetParameters(): void {
    layerInit(this.weight, this.bias);
  }
  forward(input: Tensor | { input: Tensor }): Tensor {
    const x = isOptions(input) ? (input as { input: Tensor }).input : input;
    return linear(x, this.weight, this.bias);
  }
  override extraRepr(): string {
    return (
      `in_features=${this.inFeatures}, out_features=${this.outFeatures}, ` +
      `bias=${py(this.bias !== null)}`
    );
  }
}

/** inputs [..., in1], [..., in2] → [..., out]: x1 · weight · x2 + bias. */
export class Bilinear extends Module<[Tensor, Tensor], Tensor> {
  readonly in1Features: number;
  readonly in2Features: number;
  readonly outFeatures: number;
  weight: Parameter;
  bias: Parameter | null;

  constructor(
    ...args: Init<
      [in1Features: number, in2Features: number, outFeatures: number],
      [bias: boolean],
      LinearOptions
    >
  ) {
    super();
    const o = bind<
      { in1Features: number; in2Features: number; outFeatures: number; bias: boolean } & Factory
    >("Bilinear", args, ["in1Features", "in2Features", "outFeatures"], { bias: true, ...factory });
    this.in1Features = o.in1Features;
    this.in2Features = o.in2Features;
    this.outFeatures = o.outFeatures;
    this.weight = parameter([o.outFeatures, o.in1Features, o.in2Features], o);
    this.bias = o.bias ? parameter([o.outFeatures], o) : null;
    this.resetParameters();
  }
  resetParameters(): void {
    const bound = 1 / Math.sqrt(this.in1Features);
    uniform_(this.weight, -bound, bound);
    if (this.bias) uniform_(this.bias, -bound, bound);
  }
  forward(input1: Tensor, input2: Tensor): Tensor {
    return bilinear(input1, input2, this.weight, this.bias);
  }
  override extraRepr(): string {
    return (
      `in1_features=${this.in1Features}, in2_features=${this.in2Features}, ` +
      `out_features=${this.outFeatures}, bias=${py(this.bias !== null)}`
    );
  }
}

/** Joins the dims from `startDim` to `endDim` into one. */
export class Flatten extends Module {
  readonly startDim: number;
  readonly endDim: number;
  constructor(
    ...args: Init<[], [startDim: number, endDim: number], { startDim?: number; endDim?: number }>
  ) {
    super();
    const o = bind<{ startDim: number; endDim: number }>("Flatten", args, [], {
      startDim: 1,
      endDim: -1,
    });
    this.startDim = o.startDim;
    this.endDim = o.endDim;
  }
  forward(input: Tensor): Tensor {
    return flatten(input, this.startDim, this.endDim);
  }
  override extraRepr(): string {
    return `start_dim=${this.startDim}, end_dim=${this.endDim}`;
  }
}

/** Splits one dim into several; one size may be -1. */
export class Unflatten extends Module {
  readonly dim: number;
  readonly unflattenedSize: readonly number[];
  constructor(dim: number, unflattenedSize: readonly number[]) {
    super();
    this.dim = int(dim, "Unflatten", "dim");
    this.unflattenedSize = tuple(unflattenedSize, 1, "Unflatten", "unflattenedSize");
  }
  forward(input: Tensor): Tensor {
    checkTensor(input, "Unflatten", "input");
    return ops.unflatten(input, this.dim, this.unflattenedSize);
  }
  override extraRepr(): string {
    return `dim=${this.dim}, unflattened_size=${py(this.unflattenedSize)}`;
  }
}
