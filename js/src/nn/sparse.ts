// Embedding layers: tables of vectors that are looked up by index.
import { noGrad } from "../autograd.js";
import { NotImplementedError, ShapeError, ValueError } from "../errors.js";
import { checkTensor, int } from "../frame.js";
import type { Tensor } from "../tensor.js";
import { bind, factory, py, type Factory, type Init } from "./bind.js";
import { functional } from "./functional_lookup.js";
import { normal_ } from "./init.js";
import { parameter } from "./linear.js";
import { Module } from "./module.js";
import { Parameter } from "./parameter.js";

export interface EmbeddingOptions extends Factory {
  /** Row that gets no gradient and starts at zero. */
  paddingIdx?: number | null;
  /** Rows longer than this are shortened to it when they are looked up. */
  maxNorm?: number | null;
  normType?: number;
  /** Divide gradients by how often a row occurs in the batch. */
  scaleGradByFreq?: boolean;
  sparse?: boolean;
}

interface TableFields extends Required<EmbeddingOptions> {
  numEmbeddings: number;
  embeddingDim: number;
}

const required = ["numEmbeddings", "embeddingDim"];

function wrapPadding(name: string, given: number | null, n: number): number | null {
  if (given === null) return null;
  const index = int(given, name, "paddingIdx");
  if (index >= -n && index < n) return index < 0 ? index + n : index;
  throw new ValueError(`${name}: expected paddingIdx in [${-n}, ${n - 1}], got ${index}`);
}

/** What both layers share. */
abstract class Table<Args extends unknown[]> extends Module<Args, Tensor> {
  readonly numEmbeddings: number;
  readonly embeddingDim: number;
  readonly paddingIdx: number | null;
  readonly maxNorm: number | null;
  readonly normType: number;
  readonly scaleGradByFreq: boolean;
  weight: Parameter;
  constructor(name: string, o: TableFields) {
    super();
    if (o.sparse) throw new NotImplementedError(`${name}: sparse gradients are not implemented`);
    this.numEmbeddings = int(o.numEmbeddings, name, "numEmbeddings");
    this.embeddingDim = int(o.embeddingDim, name, "embeddingDim");
    this.paddingIdx = wrapPadding(name, o.paddingIdx, this.numEmbeddings);
    this.maxNorm = o.maxNorm;
    this.normType = o.normType;
    this.scaleGradByFreq = o.scaleGradByFreq;
    this.weight = parameter([this.numEmbeddings, this.embeddingDim], o);
    this.resetParameters();
  }
  resetParameters(): void {
    normal_(this.weight);
    const { paddingIdx } = this;
    if (paddingIdx !== null) noGrad(() => this.weight.select(0, paddingIdx).zero_());
  }
  protected facts(): string {
    let text = `${this.numEmbeddings}, ${this.embeddingDim}`;
    if (this.maxNorm !== null) text += `, max_norm=${py(this.maxNorm)}`;
    if (this.normType !== 2) text += `, norm_type=${py(this.normType)}`;
    if (this.scaleGradByFreq) text += ", scale_grad_by_freq=True";
    return text;
  }
}

function adopt<L extends { weight: Parameter }>(layer: L, weight: Tensor, freeze: boolean): L {
  layer.weight = new Parameter(weight, !freeze);
  return layer;
}

function tableShape(name: string, weight: Tensor): [number, number] {
  checkTensor(weight, name, "weight");
  if (weight.ndim === 2) return weight.shape as [number, number];
  throw new ShapeError(`${name}: expected a weight of 2 dims, got shape [${weight.shape}]`);
}

const embedding = functional("embedding");

/** indices [...] → rows of weight [..., embeddingDim]. */
export class Embedding extends Table<[Tensor]> {
  constructor(
    ...args: Init<
      [numEmbeddings: number, embeddingDim: number],
      [
        paddingIdx: number | null,
        maxNorm: number | null,
        normType: number,
        scaleGradByFreq: boolean,
        sparse: boolean,
      ],
      EmbeddingOptions
    >
  ) {
    super(
      "Embedding",
      bind<TableFields>("Embedding", args, required, {
        paddingIdx: null,
        maxNorm: null,
        normType: 2,
        scaleGradByFreq: false,
        sparse: false,
        ...factory,
      }),
    );
  }
  /** A layer over given vectors, fixed unless `freeze` = false. */
  static fromPretrained(
    weight: Tensor,
    options: EmbeddingOptions & { freeze?: boolean } = {},
  ): Embedding {
    const { freeze = true, ...rest } = options;
    return adopt(new Embedding(...tableShape("Embedding", weight), rest), weight, freeze);
  }
  forward(input: Tensor): Tensor {
    const { weight, paddingIdx, maxNorm, normType, scaleGradByFreq } = this;
    return embedding(input, weight, paddingIdx, maxNorm, normType, scaleGradByFreq);
  }
  override extraRepr(): string {
    const text = this.facts();
    return this.paddingIdx === null ? text : `${text}, padding_idx=${this.paddingIdx}`;
  }
}

export interface EmbeddingBagOptions extends EmbeddingOptions {
  mode?: "sum" | "mean" | "max";
  includeLastOffset?: boolean;
}

const embeddingBag = functional("embeddingBag");

/** Sums, means or maxima of looked-up rows, bag by bag. */
export class EmbeddingBag extends Table<
  [input: Tensor, offsets?: Tensor | null, perSampleWeights?: Tensor | null]
> {
  readonly mode: "sum" | "mean" | "max";
  readonly includeLastOffset: boolean;
  constructor(
    ...args: Init<
      [numEmbeddings: number, embeddingDim: number],
      [
        maxNorm: number | null,
        normType: number,
        scaleGradByFreq: boolean,
        mode: "sum" | "mean" | "max",
        sparse: boolean,
      ],
      EmbeddingBagOptions
    >
  ) {
    const o = bind<TableFields & Required<EmbeddingBagOptions>>("EmbeddingBag", args, required, {
      maxNorm: null,
      normType: 2,
      scaleGradByFreq: false,
      mode: "mean",
      sparse: false,
      includeLastOffset: false,
      paddingIdx: null,
      ...factory,
    });
    super("EmbeddingBag", o);
    this.mode = o.mode;
    this.includeLastOffset = o.includeLastOffset;
  }
  static fromPretrained(
    weight: Tensor,
    options: EmbeddingBagOptions & { freeze?: boolean } = {},
  ): EmbeddingBag {
    const { freeze = true, ...rest } = options;
    return adopt(new EmbeddingBag(...tableShape("EmbeddingBag", weight), rest), weight, freeze);
  }
  forward(
    input: Tensor,
    offsets: Tensor | null = null,
    perSampleWeights: Tensor | null = null,
  ): Tensor {
    const { maxNorm, normType, scaleGradByFreq, mode, includeLastOffset, paddingIdx } = this;
    return embeddingBag(input, this.weight, {
      offsets,
      maxNorm,
      normType,
      scaleGradByFreq,
      mode,
      perSampleWeights,
      includeLastOffset,
      paddingIdx,
    });
  }
  override extraRepr(): string {
    return `${this.facts()}, mode=${py(this.mode)}`;
  }
}
