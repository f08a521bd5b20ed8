// Recurrent layers and cells, written with differentiable operators.
import { describe } from "../dtype.js";
import { ShapeError, TypeError_, ValueError } from "../errors.js";
import { checkTensor, int } from "../frame.js";
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";
import { bind, factory, layerCount, placed, py, type Factory, type Init } from "./bind.js";
import { functional } from "./functional_lookup.js";
import { uniform_ } from "./init.js";
import { parameter } from "./linear.js";
import { Module } from "./module.js";
import type { Parameter } from "./parameter.js";

const linear = functional("linear");
const stack = functional("stack");
const cat = functional("cat");
const dropout = functional("dropout");

type Kind = "RNN_TANH" | "RNN_RELU" | "LSTM" | "GRU";
const gates: Record<Kind, number> = { RNN_TANH: 1, RNN_RELU: 1, LSTM: 4, GRU: 3 };

/** Hidden state [N, H], and the LSTM's cell state. */
interface State {
  h: Tensor;
  c: Tensor | null;
}

function gate(t: Tensor, i: number, size: number): Tensor {
  return t.narrow(-1, i * size, size);
}

/** One step: `x` = input part of the gates, `y` = hidden part, both with their bias. */
function advance(kind: Kind, x: Tensor, y: Tensor, state: State, size: number): State {
  if (kind === "GRU") {
    const r = gate(x, 0, size)
      .add(gate(y, 0, size))
      .sigmoid();
    const z = gate(x, 1, size)
      .add(gate(y, 1, size))
      .sigmoid();
    const n = gate(x, 2, size)
      .add(r.mul(gate(y, 2, size)))
      .tanh();
    return { h: n.add(z.mul(state.h.sub(n))), c: null };
  }
  const sum = x.add(y);
  if (kind === "RNN_TANH") return { h: sum.tanh(), c: null };
  if (kind === "RNN_RELU") return { h: ops.relu(sum), c: null };
  const input = gate(sum, 0, size).sigmoid();
  const forget = gate(sum, 1, size).sigmoid();
  const cell = gate(sum, 2, size).tanh();
  const output = gate(sum, 3, size).sigmoid();
  const c = forget.mul(state.c!).add(input.mul(cell));
  return { h: output.mul(c.tanh()), c };
}

export interface RNNOptions extends Factory {
  numLayers?: number;
  bias?: boolean;
  /** Tensors are [N, L, ...] instead of [L, N, ...]. */
  batchFirst?: boolean;
  /** Between the layers, in training. */
  dropout?: number;
  bidirectional?: boolean;
}

interface Fields extends Required<RNNOptions> {
  inputSize: number;
  hiddenSize: number;
  nonlinearity: "tanh" | "relu";
  projSize: number;
}

/** What all recurrent layers share; `Hidden` is h, or [h, c]. */
abstract class RNNBase<Hidden> extends Module<
  [input: Tensor, hidden?: Hidden | null],
  [output: Tensor, hidden: Hidden]
> {
  readonly inputSize: number;
  readonly hiddenSize: number;
  readonly numLayers: number;
  readonly bias: boolean;
  readonly batchFirst: boolean;
  readonly dropout: number;
  readonly bidirectional: boolean;
  readonly projSize: number;
  private readonly kind: Kind;

  constructor(kind: Kind, o: Fields) {
    super();
    const { name } = new.target;
    if (!(o.dropout >= 0 && o.dropout <= 1)) {
      throw new ValueError(`${name}: expected dropout in [0, 1], got ${describe(o.dropout)}`);
    }
    const hiddenSize = int(o.hiddenSize, name, "hiddenSize");
    const projSize = int(o.projSize, name, "projSize");
    if (!(projSize >= 0 && projSize < hiddenSize) && projSize !== 0) {
      throw new ValueError(`${name}: expected projSize below ${hiddenSize}, got ${projSize}`);
    }
    this.kind = kind;
    this.inputSize = int(o.inputSize, name, "inputSize");
    this.hiddenSize = hiddenSize;
    this.numLayers = layerCount(o.numLayers, 1, name, "numLayers");
    this.bias = o.bias;
    this.batchFirst = o.batchFirst;
    this.dropout = o.dropout;
    this.bidirectional = o.bidirectional;
    this.projSize = projSize;
    this.makeWeights(o);
    this.resetParameters();
  }
  private makeWeights(o: Fields): void {
    const { hiddenSize, projSize } = this;
    const rows = gates[this.kind] * hiddenSize;
    const outSize = this.outSize();
    const directions = o.bidirectional ? 2 : 1;
    for (let layer = 0; layer < this.numLayers; layer++) {
      const inSize = layer === 0 ? this.inputSize : outSize * directions;
      for (let direction = 0; direction < directions; direction++) {
        const end = `_l${layer}${direction === 1 ? "_reverse" : ""}`;
        this.registerParameter(`weight_ih${end}`, parameter([rows, inSize], o));
        this.registerParameter(`weight_hh${end}`, parameter([rows, outSize], o));
        if (o.bias) {
          this.registerParameter(`bias_ih${end}`, parameter([rows], o));
          this.registerParameter(`bias_hh${end}`, parameter([rows], o));
        }
        if (projSize > 0) {
          this.registerParameter(`weight_hr${end}`, parameter([outSize, hiddenSize], o));
        }
      }
    }
  }
  private outSize(): number {
    return this.projSize || this.hiddenSize;
  }
  resetParameters(): void {
    const bound = this.hiddenSize > 0 ? 1 / Math.sqrt(this.hiddenSize) : 0;
    for (const weight of this.parameters()) uniform_(weight, -bound, bound);
  }
  private weight(name: string): Parameter | null {
    return (this as unknown as Record<string, Parameter | undefined>)[name] ?? null;
  }

  /** All layers over a sequence [L, N, I]; `start` has a state per layer and direction. */
  private layers(input: Tensor, start: readonly State[]): { output: Tensor; last: State[] } {
    const directions = this.bidirectional ? 2 : 1;
    const last: State[] = [];
    let x = input;
    for (let layer = 0; layer < this.numLayers; layer++) {
      const outputs: Tensor[] = [];
      for (let direction = 0; direction < directions; direction++) {
        const end = `_l${layer}${direction === 1 ? "_reverse" : ""}`;
        const run = this.sequence(x, start[layer * directions + direction]!, end, direction === 1);
        outputs.push(run.output);
        last.push(run.last);
      }
      x = outputs.length === 1 ? outputs[0]! : cat(outputs, -1);
      if (this.dropout > 0 && layer < this.numLayers - 1) {
        x = dropout(x, this.dropout, this.training);
      }
    }
    return { output: x, last };
  }
  private sequence(
    x: Tensor,
    start: State,
    end: string,
    backwards: boolean,
  ): { output: Tensor; last: State } {
    const inputs = linear(x, this.weight(`weight_ih${end}`), this.weight(`bias_ih${end}`));
    const weight = this.weight(`weight_hh${end}`);
    const bias = this.weight(`bias_hh${end}`);
    const project = this.weight(`weight_hr${end}`);
    const length = x.size(0);
    const outputs = new Array<Tensor>(length);
    let state = start;
    for (let i = 0; i < length; i++) {
      const at = backwards ? length - 1 - i : i;
      const hidden = linear(state.h, weight, bias);
      state = advance(this.kind, inputs.select(0, at), hidden, state, this.hiddenSize);
      if (project) state = { h: linear(state.h, project), c: state.c };
      outputs[at] = state.h;
    }
    return { output: stack(outputs, 0), last: state };
  }

  /** Runs batched or single sequences; `hidden` holds h and, for an LSTM, c. */
  protected run(
    input: Tensor,
    hidden: readonly (Tensor | null)[],
  ): [Tensor, Tensor, Tensor | null] {
    const { name } = this.constructor;
    checkTensor(input, name, "input");
    const single = input.ndim === 2;
    if (!single && input.ndim !== 3) {
      throw new ShapeError(`${name}: expected an input of 2 or 3 dims, got shape [${input.shape}]`);
    }
    if (input.size(-1) !== this.inputSize) {
      throw new ShapeError(
        `${name}: expected an input of ${this.inputSize} features, got shape [${input.shape}]`,
      );
    }
    let x = single ? input.unsqueeze(1) : input;
    if (!single && this.batchFirst) x = x.transpose(0, 1);
    const states = this.states(x, hidden, single);
    const { output, last } = this.layers(x, states);
    const pack = (list: Tensor[]) => {
      const all = stack(list, 0);
      return single ? all.select(1, 0) : all;
    };
    const flipped = !single && this.batchFirst ? output.transpose(0, 1) : output;
    const cells = this.kind === "LSTM" ? pack(last.map((state) => state.c!)) : null;
    return [single ? output.select(1, 0) : flipped, pack(last.map((state) => state.h)), cells];
  }
  private states(x: Tensor, [h, c]: readonly (Tensor | null)[], single: boolean): State[] {
    const count = this.numLayers * (this.bidirectional ? 2 : 1);
    const make = (given: Tensor | null | undefined, size: number): Tensor => {
      const shape = [count, x.size(1), size];
      if (!given) return ops.zeros(shape, placed({ device: x.device, dtype: x.dtype }));
      checkTensor(given, this.constructor.name, "hidden");
      const full = single ? given.unsqueeze(1) : given;
      if (String(full.shape) === String(shape)) return full;
      throw new ShapeError(
        `${this.constructor.name}: expected a hidden state of shape ` +
          `[${single ? [shape[0], shape[2]] : shape}], got [${given.shape}]`,
      );
    };
    const hs = make(h, this.outSize());
    const cs = this.kind === "LSTM" ? make(c, this.hiddenSize) : null;
    return Array.from({ length: count }, (_, i) => ({
      h: hs.select(0, i),
      c: cs ? cs.select(0, i) : null,
    }));
  }
  override extraRepr(): string {
    let text = `${this.inputSize}, ${this.hiddenSize}`;
    if (this.projSize !== 0) text += `, proj_size=${this.projSize}`;
    if (this.numLayers !== 1) text += `, num_layers=${this.numLayers}`;
    if (!this.bias) text += ", bias=False";
    if (this.batchFirst) text += ", batch_first=True";
    if (this.dropout !== 0) text += `, dropout=${py(this.dropout)}`;
    if (this.bidirectional) text += ", bidirectional=True";
    return text;
  }
}

const required = ["inputSize", "hiddenSize"];
const common = {
  bias: true,
  batchFirst: false,
  dropout: 0,
  bidirectional: false,
};

function checkNonlinearity(name: string, given: unknown): void {
  if (given === "tanh" || given === "relu") return;
  throw new ValueError(`${name}: expected nonlinearity "tanh" or "relu", got ${describe(given)}`);
}

function checkPair(name: string, hidden: unknown): void {
  if (hidden === null || Array.isArray(hidden)) return;
  throw new TypeError_(`${name}: expected [h, c] as hidden state, got ${describe(hidden)}`);
}

type Sizes = [inputSize: number, hiddenSize: number];

/** Elman's network: h' = tanh(W x + b + U h + c). Returns [output, h]. */
export class RNN extends RNNBase<Tensor> {
  readonly nonlinearity: "tanh" | "relu";
  constructor(
    ...args: Init<
      Sizes,
      [
        numLayers: number,
        nonlinearity: "tanh" | "relu",
        bias: boolean,
        batchFirst: boolean,
        dropout: number,
        bidirectional: boolean,
      ],
      RNNOptions & { nonlinearity?: "tanh" | "relu" }
    >
  ) {
    const o = bind<Fields>("RNN", args, required, {
      numLayers: 1,
      nonlinearity: "tanh",
      ...common,
      ...factory,
    });
    checkNonlinearity("RNN", o.nonlinearity);
    super(o.nonlinearity === "relu" ? "RNN_RELU" : "RNN_TANH", { ...o, projSize: 0 });
    this.nonlinearity = o.nonlinearity;
  }
  forward(input: Tensor, hidden: Tensor | null = null): [Tensor, Tensor] {
    const [output, h] = this.run(input, [hidden]);
    return [output, h];
  }
}

type LayerArgs = [
  numLayers: number,
  bias: boolean,
  batchFirst: boolean,
  dropout: number,
  bidirectional: boolean,
];

/** Hochreiter and Schmidhuber (1997). Returns [output, [h, c]]. */
export class LSTM extends RNNBase<[h: Tensor, c: Tensor]> {
  constructor(
    ...args: Init<Sizes, [...LayerArgs, projSize: number], RNNOptions & { projSize?: number }>
  ) {
    const o = bind<Fields>("LSTM", args, required, {
      numLayers: 1,
      ...common,
      projSize: 0,
      ...factory,
    });
    super("LSTM", o);
  }
  forward(
    input: Tensor,
    hidden: readonly [Tensor, Tensor] | null = null,
  ): [Tensor, [Tensor, Tensor]] {
    checkPair("LSTM", hidden);
    const [output, h, c] = this.run(input, hidden ?? [null, null]);
    return [output, [h, c!]];
  }
}

/** Cho et al. (2014). Returns [output, h]. */
export class GRU extends RNNBase<Tensor> {
  constructor(...args: Init<Sizes, LayerArgs, RNNOptions>) {
    const o = bind<Fields>("GRU", args, required, { numLayers: 1, ...common, ...factory });
    super("GRU", { ...o, projSize: 0 });
  }
  forward(input: Tensor, hidden: Tensor | null = null): [Tensor, Tensor] {
    const [output, h] = this.run(input, [hidden]);
    return [output, h];
  }
}

export interface CellOptions extends Factory {
  bias?: boolean;
}

interface CellFields extends Factory {
  inputSize: number;
  hiddenSize: number;
  bias: boolean;
  nonlinearity: "tanh" | "relu";
}

const cellNames = {
  weightIh: "weight_ih",
  weightHh: "weight_hh",
  biasIh: "bias_ih",
  biasHh: "bias_hh",
};

/** One step of a recurrent layer over [N, I] or [I]. */
abstract class Cell<Hidden, Out> extends Module<[input: Tensor, hidden?: Hidden | null], Out> {
  readonly inputSize: number;
  readonly hiddenSize: number;
  weightIh: Parameter;
  weightHh: Parameter;
  biasIh: Parameter | null;
  biasHh: Parameter | null;
  private readonly kind: Kind;
  constructor(kind: Kind, o: CellFields) {
    super();
    const { name } = new.target;
    const hiddenSize = int(o.hiddenSize, name, "hiddenSize");
    const rows = gates[kind] * hiddenSize;
    this.kind = kind;
    this.inputSize = int(o.inputSize, name, "inputSize");
    this.hiddenSize = hiddenSize;
    this.weightIh = parameter([rows, this.inputSize], o);
    this.weightHh = parameter([rows, hiddenSize], o);
    this.biasIh = o.bias ? parameter([rows], o) : null;
    this.biasHh = o.bias ? parameter([rows], o) : null;
    const bound = hiddenSize > 0 ? 1 / Math.sqrt(hiddenSize) : 0;
    for (const weight of this.parameters()) uniform_(weight, -bound, bound);
  }
  override get _stateNames(): Readonly<Record<string, string>> {
    return cellNames;
  }
  protected step(input: Tensor, h: Tensor | null, c: Tensor | null): State {
    const { name } = this.constructor;
    checkTensor(input, name, "input");
    if (input.ndim !== 1 && input.ndim !== 2) {
      throw new ShapeError(`${name}: expected an input of 1 or 2 dims, got shape [${input.shape}]`);
    }
    for (const t of [h, c]) if (t !== null) checkTensor(t, name, "hidden");
    const zeros = () =>
      ops.zeros(
        [...input.shape.slice(0, -1), this.hiddenSize],
        placed({ device: input.device, dtype: input.dtype }),
      );
    const state = { h: h ?? zeros(), c: this.kind === "LSTM" ? (c ?? zeros()) : null };
    const x = linear(input, this.weightIh, this.biasIh);
    const y = linear(state.h, this.weightHh, this.biasHh);
    return advance(this.kind, x, y, state, this.hiddenSize);
  }
  override extraRepr(): string {
    const bias = this.biasIh === null ? ", bias=False" : "";
    return `${this.inputSize}, ${this.hiddenSize}${bias}`;
  }
}

/** One step of an RNN. */
export class RNNCell extends Cell<Tensor, Tensor> {
  constructor(
    ...args: Init<
      Sizes,
      [bias: boolean, nonlinearity: "tanh" | "relu"],
      CellOptions & { nonlinearity?: "tanh" | "relu" }
    >
  ) {
    const defaults = { bias: true, nonlinearity: "tanh", ...factory };
    const o = bind<CellFields>("RNNCell", args, required, defaults);
    checkNonlinearity("RNNCell", o.nonlinearity);
    super(o.nonlinearity === "relu" ? "RNN_RELU" : "RNN_TANH", o);
  }
  forward(input: Tensor, hidden: Tensor | null = null): Tensor {
    return this.step(input, hidden, null).h;
  }
}

/** One step of a GRU. */
export class GRUCell extends Cell<Tensor, Tensor> {
  constructor(...args: Init<Sizes, [bias: boolean], CellOptions>) {
    super("GRU", bind<CellFields>("GRUCell", args, required, { bias: true, ...factory }));
  }
  forward(input: Tensor, hidden: Tensor | null = null): Tensor {
    return this.step(input, hidden, null).h;
  }
}

/** One step of an LSTM. Returns [h, c]. */
export class LSTMCell extends Cell<readonly [Tensor, Tensor], [h: Tensor, c: Tensor]> {
  constructor(...args: Init<Sizes, [bias: boolean], CellOptions>) {
    super("LSTM", bind<CellFields>("LSTMCell", args, required, { bias: true, ...factory }));
  }
  forward(input: Tensor, hidden: readonly [Tensor, Tensor] | null = null): [Tensor, Tensor] {
    checkPair("LSTMCell", hidden);
    const { h, c } = this.step(input, hidden?.[0] ?? null, hidden?.[1] ?? null);
    return [h, c!];
  }
}
