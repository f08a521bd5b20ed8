// Convolution layers.
import { describe } from "../dtype.js";
import { ValueError } from "../errors.js";
import { checkTensor, int } from "../frame.js";
import type { Tensor } from "../tensor.js";
import { bind, factory, py, tuple, type Factory, type Init } from "./bind.js";
import { functional } from "./functional_lookup.js";
import { layerInit } from "./init.js";
import { parameter } from "./linear.js";
import { Module } from "./module.js";
import type { Parameter } from "./parameter.js";

export type PaddingMode = "zeros" | "reflect" | "replicate" | "circular";
/** One size for all dims or one per dim. */
export type Size = number | readonly number[];

export interface ConvOptions extends Factory {
  stride?: Size;
  /** Rows added on both sides, "same" (stride 1 only) or "valid". */
  padding?: Size | "same" | "valid";
  dilation?: Size;
  groups?: number;
  bias?: boolean;
  paddingMode?: PaddingMode;
}

type ConvInit = Init<
  [inChannels: number, outChannels: number, kernelSize: Size],
  [
    stride: Size,
    padding: Size | "same" | "valid",
    dilation: Size,
    groups: number,
    bias: boolean,
    paddingMode: PaddingMode,
  ],
  ConvOptions
>;

interface ConvFields {
  inChannels: number;
  outChannels: number;
  kernelSize: Size;
  stride: Size;
  padding: Size | "same" | "valid";
  outputPadding: Size;
  dilation: Size;
  groups: number;
  bias: boolean;
  paddingMode: PaddingMode;
}

const required = ["inChannels", "outChannels", "kernelSize"];
const pad = functional("pad");

/** What all convolutions share; `rank` counts the spatial dims. */
abstract class ConvBase extends Module<[input: Tensor, outputSize?: readonly number[]], Tensor> {
  readonly inChannels: number;
  readonly outChannels: number;
  readonly kernelSize: number[];
  readonly stride: number[];
  readonly padding: number[] | "same" | "valid";
  readonly outputPadding: number[];
  readonly dilation: number[];
  readonly groups: number;
  readonly paddingMode: PaddingMode;
  weight: Parameter;
  bias: Parameter | null;

  constructor(rank: number, transposed: boolean, o: ConvFields & Factory) {
    super();
    const { name } = new.target;
    const inChannels = int(o.inChannels, name, "inChannels");
    const outChannels = int(o.outChannels, name, "outChannels");
    const groups = int(o.groups, name, "groups");
    for (const [what, n] of [
      ["inChannels", inChannels],
      ["outChannels", outChannels],
    ] as const) {
      if (groups > 0 && n % groups === 0) continue;
      throw new ValueError(`${name}: expected ${what} divisible by groups ${groups}, got ${n}`);
    }
    this.inChannels = inChannels;
    this.outChannels = outChannels;
    this.kernelSize = tuple(o.kernelSize, rank, name, "kernelSize");
    this.stride = tuple(o.stride, rank, name, "stride");
    this.padding =
      typeof o.padding === "string" ? o.padding : tuple(o.padding, rank, name, "padding");
    this.outputPadding = tuple(o.outputPadding, rank, name, "outputPadding");
    this.dilation = tuple(o.dilation, rank, name, "dilation");
    this.groups = groups;
    this.paddingMode = o.paddingMode;
    if (this.padding === "same" && this.stride.some((s) => s !== 1)) {
      throw new ValueError(`${name}: expected stride 1 with padding "same", got ${o.stride}`);
    }
    if (transposed && o.paddingMode !== "zeros") {
      throw new ValueError(`${name}: expected paddingMode "zeros", got ${describe(o.paddingMode)}`);
    }
    const [first, second] = transposed
      ? [inChannels, outChannels / groups]
      : [outChannels, inChannels / groups];
    this.weight = parameter([first, second, ...this.kernelSize], o);
    this.bias = o.bias ? parameter([outChannels], o) : null;
    this.resetParameters();
  }
  resetParameters(): void {
    layerInit(this.weight, this.bias);
  }
  /** Padding before and after each dim, last dim first, as `pad` takes it. */
  protected pads(): number[] {
    const out: number[] = [];
    for (let d = this.kernelSize.length - 1; d >= 0; d--) {
      if (this.padding === "same") {
        const total = this.dilation[d]! * (this.kernelSize[d]! - 1);
        out.push(Math.floor(total / 2), total - Math.floor(total / 2));
      } else {
        const p = this.padding === "valid" ? 0 : this.padding[d]!;
        out.push(p, p);
      }
    }
    return out;
  }
  override extraRepr(): string {
    const rank = this.kernelSize.length;
    const differs = (list: readonly number[] | string, value: number) =>
      typeof list === "string" || list.some((x) => x !== value);
    let text = `${this.inChannels}, ${this.outChannels}, kernel_size=${py(this.kernelSize)}`;
    text += `, stride=${py(this.stride)}`;
    if (differs(this.padding, 0)) {
      text += `, padding=${typeof this.padding === "string" ? this.padding : py(this.padding)}`;
    }
    if (differs(this.dilation, 1)) text += `, dilation=${py(this.dilation)}`;
    if (differs(this.outputPadding, 0)) text += `, output_padding=${py(this.outputPadding)}`;
    if (this.groups !== 1) text += `, groups=${this.groups}`;
    if (this.bias === null) text += ", bias=False";
    if (this.paddingMode !== "zeros" && rank > 0) text += `, padding_mode=${this.paddingMode}`;
    return text;
  }
}

const convDefaults = {
  stride: 1,
  padding: 0,
  dilation: 1,
  groups: 1,
  bias: true,
  paddingMode: "zeros",
  ...factory,
};

function convFields(name: string, args: readonly unknown[]): ConvFields & Factory {
  const o = bind<ConvFields & Factory>(name, args, required, convDefaults);
  return { ...o, outputPadding: 0 };
}

abstract class Conv extends ConvBase {
  protected run(f: ReturnType<typeof functional>, input: Tensor): Tensor {
    const { weight, bias, stride, padding, dilation, groups, paddingMode } = this;
    if (paddingMode === "zeros") return f(input, weight, bias, stride, padding, dilation, groups);
    const padded = pad(input, this.pads(), paddingMode);
    return f(padded, weight, bias, stride, 0, dilation, groups);
  }
}

const conv1d = functional("conv1d");
/** [N, C, L] → [N, out, L']. */
export class Conv1d extends Conv {
  constructor(...args: ConvInit) {
    super(1, false, convFields("Conv1d", args));
  }
  forward(input: Tensor): Tensor {
    return this.run(conv1d, input);
  }
}

const conv2d = functional("conv2d");
/** [N, C, H, W] → [N, out, H', W']. */
export class Conv2d extends Conv {
  constructor(...args: ConvInit) {
    super(2, false, convFields("Conv2d", args));
  }
  forward(input: Tensor): Tensor {
    return this.run(conv2d, input);
  }
}

const conv3d = functional("conv3d");
/** [N, C, D, H, W] → [N, out, D', H', W']. */
export class Conv3d extends Conv {
  constructor(...args: ConvInit) {
    super(3, false, convFields("Conv3d", args));
  }
  forward(input: Tensor): Tensor {
    return this.run(conv3d, input);
  }
}

export interface ConvTransposeOptions extends Factory {
  stride?: Size;
  padding?: Size;
  /** Rows added to one side of the result. */
  outputPadding?: Size;
  groups?: number;
  bias?: boolean;
  dilation?: Size;
  paddingMode?: "zeros";
}

type ConvTransposeInit = Init<
  [inChannels: number, outChannels: number, kernelSize: Size],
  [
    stride: Size,
    padding: Size,
    outputPadding: Size,
    groups: number,
    bias: boolean,
    dilation: Size,
    paddingMode: "zeros",
  ],
  ConvTransposeOptions
>;

const transposeDefaults = {
  stride: 1,
  padding: 0,
  outputPadding: 0,
  groups: 1,
  bias: true,
  dilation: 1,
  paddingMode: "zeros",
  ...factory,
};

abstract class ConvTranspose extends ConvBase {
  constructor(rank: number, name: string, args: readonly unknown[]) {
    super(rank, true, bind<ConvFields & Factory>(name, args, required, transposeDefaults));
  }
  protected run(
    f: ReturnType<typeof functional>,
    input: Tensor,
    outputSize?: readonly number[],
  ): Tensor {
    const { weight, bias, stride, padding, groups, dilation } = this;
    const extra = outputSize ? this.paddingFor(input, outputSize) : this.outputPadding;
    return f(input, weight, bias, stride, padding, extra, groups, dilation);
  }
  /** The outputPadding that gives the wanted spatial size. */
  private paddingFor(input: Tensor, outputSize: readonly number[]): number[] {
    const rank = this.kernelSize.length;
    const { name } = this.constructor;
    checkTensor(input, name, "input");
    const spatial = tuple(outputSize, rank, name, "outputSize").slice(-rank);
    const sizes = input.shape.slice(-rank);
    return spatial.map((want, d) => {
      const pad = (this.padding as number[])[d]!;
      const span = this.dilation[d]! * (this.kernelSize[d]! - 1) + 1;
      const least = (sizes[d]! - 1) * this.stride[d]! - 2 * pad + span;
      const most = least + this.stride[d]! - 1;
      if (want >= least && want <= most) return want - least;
      throw new ValueError(`${name}: expected outputSize in [${least}, ${most}], got ${want}`);
    });
  }
}

const convTranspose1d = functional("convTranspose1d");
/** The gradient of Conv1d as a layer. */
export class ConvTranspose1d extends ConvTranspose {
  constructor(...args: ConvTransposeInit) {
    super(1, "ConvTranspose1d", args);
  }
  forward(input: Tensor, outputSize?: readonly number[]): Tensor {
    return this.run(convTranspose1d, input, outputSize);
  }
}

const convTranspose2d = functional("convTranspose2d");
/** The gradient of Conv2d as a layer. */
export class ConvTranspose2d extends ConvTranspose {
  constructor(...args: ConvTransposeInit) {
    super(2, "ConvTranspose2d", args);
  }
  forward(input: Tensor, outputSize?: readonly number[]): Tensor {
    return this.run(convTranspose2d, input, outputSize);
  }
}

const convTranspose3d = functional("convTranspose3d");
/** The gradient of Conv3d as a layer. */
export class ConvTranspose3d extends ConvTranspose {
  constructor(...args: ConvTransposeInit) {
    super(3, "ConvTranspose3d", args);
  }
  forward(input: Tensor, outputSize?: readonly number[]): Tensor {
    return this.run(convTranspose3d, input, outputSize);
  }
}
