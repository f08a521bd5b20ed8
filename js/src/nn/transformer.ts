// Transformer layers and their stacks.
import { describe, float32 } from "../dtype.js";
import { TypeError_ } from "../errors.js";
import { checkTensor, int } from "../frame.js";
import * as ops from "../ops.gen.js";
import { forkRng } from "../random.js";
import type { Tensor } from "../tensor.js";
import { MultiheadAttention } from "./attention.js";
import { bind, factory, layerCount, type Factory, type Init } from "./bind.js";
import { ModuleList } from "./containers.js";
import { Dropout } from "./dropout.js";
import { functional } from "./functional_lookup.js";
import { xavierUniform_ } from "./init.js";
import { Linear } from "./linear.js";
import { Module, type AnyModule } from "./module.js";
import { LayerNorm } from "./normalization.js";

type Activation = "relu" | "gelu" | ((x: Tensor) => Tensor);
const relu = functional("relu");
const gelu = functional("gelu");

function activationOf(activation: Activation): (x: Tensor) => Tensor {
  if (typeof activation === "function") return activation;
  if (activation === "relu") return relu;
  if (activation === "gelu") return gelu;
  throw new TypeError_(`Transformer: expected "relu" or "gelu", got ${describe(activation)}`);
}

export interface TransformerLayerOptions extends Factory {
  dimFeedforward?: number;
  dropout?: number;
  activation?: Activation;
  layerNormEps?: number;
  batchFirst?: boolean;
  /** Normalise before each part instead of after it. */
  normFirst?: boolean;
  bias?: boolean;
}
type LayerFields = Required<TransformerLayerOptions> & { dModel: number; nhead: number };

const layerDefaults = {
  dimFeedforward: 2048,
  dropout: 0.1,
  activation: "relu",
  layerNormEps: 1e-5,
  batchFirst: false,
  normFirst: false,
  bias: true,
  ...factory,
};

type LayerInit = Init<
  [dModel: number, nhead: number],
  [dimFeedforward: number, dropout: number, activation: Activation],
  TransformerLayerOptions
>;

const stateNames = { selfAttn: "self_attn", multiheadAttn: "multihead_attn" };

/** The feed-forward part and what both kinds of layers share. */
abstract class TransformerLayer<Args extends unknown[]> extends Module<Args, Tensor> {
  /** @internal The arguments, by which copies are made. */
  _init!: LayerFields;
  abstract linear1: Linear;
  abstract linear2: Linear;
  abstract dropout: Dropout;

  override get _stateNames(): Readonly<Record<string, string>> {
    return stateNames;
  }
  protected feedForward(x: Tensor): Tensor {
    const hidden = activationOf(this._init.activation)(this.linear1(x));
    return this.linear2(this.dropout(hidden));
  }
}

const attention = (o: LayerFields) =>
  new MultiheadAttention(o.dModel, o.nhead, {
    dropout: o.dropout,
    bias: o.bias,
    batchFirst: o.batchFirst,
    device: o.device,
    dtype: o.dtype,
  });
const norm = ({ dModel, layerNormEps: eps, bias, device, dtype }: LayerFields) =>
  new LayerNorm(dModel, { eps, bias, device, dtype });
const dense = (from: number, to: number, { bias, device, dtype }: LayerFields) =>
  new Linear(from, to, { bias, device, dtype });

export interface EncoderLayerMasks {
  srcMask?: Tensor | null;
  srcKeyPaddingMask?: Tensor | null;
  isCausal?: boolean;
}
type EncoderLayerArgs = Init<
  [src: Tensor],
  [srcMask: Tensor | null, srcKeyPaddingMask: Tensor | null, isCausal: boolean],
  EncoderLayerMasks
>;

/** Self-attention and a feed-forward network. */
export class TransformerEncoderLayer extends TransformerLayer<EncoderLayerArgs> {
  selfAttn: MultiheadAttention;
  linear1: Linear;
  dropout: Dropout;
  linear2: Linear;
  norm1: LayerNorm;
  norm2: LayerNorm;
  dropout1: Dropout;
  dropout2: Dropout;
  constructor(...args: LayerInit) {
    super();
    const names = ["dModel", "nhead"];
    const o = bind<LayerFields>("TransformerEncoderLayer", args, names, layerDefaults);
    this._init = o;
    this.selfAttn = attention(o);
    this.linear1 = dense(o.dModel, o.dimFeedforward, o);
    this.dropout = new Dropout(o.dropout);
    this.linear2 = dense(o.dimFeedforward, o.dModel, o);
    this.norm1 = norm(o);
    this.norm2 = norm(o);
    this.dropout1 = new Dropout(o.dropout);
    this.dropout2 = new Dropout(o.dropout);
  }
  forward(...args: EncoderLayerArgs): Tensor {
    const { src, srcMask, srcKeyPaddingMask } = bind<Required<EncoderLayerMasks> & { src: Tensor }>(
      "TransformerEncoderLayer",
      args,
      ["src"],
      { srcMask: null, srcKeyPaddingMask: null, isCausal: false },
    );
    checkTensor(src, "TransformerEncoderLayer", "src");
    const attend = (x: Tensor) => {
      const masks = { attnMask: srcMask, keyPaddingMask: srcKeyPaddingMask, needWeights: false };
      return this.dropout1(this.selfAttn(x, x, x, masks)[0]);
    };
    const feed = (x: Tensor) => this.dropout2(this.feedForward(x));
    if (this._init.normFirst) {
      const x = src.add(attend(this.norm1(src)));
      return x.add(feed(this.norm2(x)));
    }
    const x = this.norm1(src.add(attend(src)));
    return this.norm2(x.add(feed(x)));
  }
  /** @internal Another layer of the same kind with the same weights. */
  _copy(): TransformerEncoderLayer {
    const { dModel, nhead, ...rest } = this._init;
    // The weights are replaced: drawing them must not move the generator on.
    const copy = forkRng(() => new TransformerEncoderLayer(dModel, nhead, rest));
    copy.loadStateDict(this.stateDict());
    return copy;
  }
}

export interface DecoderLayerMasks {
  tgtMask?: Tensor | null;
  memoryMask?: Tensor | null;
  tgtKeyPaddingMask?: Tensor | null;
  memoryKeyPaddingMask?: Tensor | null;
  tgtIsCausal?: boolean | null;
  memoryIsCausal?: boolean;
}
type DecoderLayerArgs = Init<
  [tgt: Tensor, memory: Tensor],
  [
    tgtMask: Tensor | null,
    memoryMask: Tensor | null,
    tgtKeyPaddingMask: Tensor | null,
    memoryKeyPaddingMask: Tensor | null,
  ],
  DecoderLayerMasks
>;
type DecoderFields = Required<DecoderLayerMasks> & { tgt: Tensor; memory: Tensor };
const decoderDefaults = {
  tgtMask: null,
  memoryMask: null,
  tgtKeyPaddingMask: null,
  memoryKeyPaddingMask: null,
  tgtIsCausal: null,
  memoryIsCausal: false,
};

/** Self-attention, attention to the encoder's output and a feed-forward network. */
export class TransformerDecoderLayer extends TransformerLayer<DecoderLayerArgs> {
  selfAttn: MultiheadAttention;
  multiheadAttn: MultiheadAttention;
  linear1: Linear;
  dropout: Dropout;
  linear2: Linear;
  norm1: LayerNorm;
  norm2: LayerNorm;
  norm3: LayerNorm;
  dropout1: Dropout;
  dropout2: Dropout;
  dropout3: Dropout;
  constructor(...args: LayerInit) {
    super();
    const names = ["dModel", "nhead"];
    const o = bind<LayerFields>("TransformerDecoderLayer", args, names, layerDefaults);
    this._init = o;
    this.selfAttn = attention(o);
    this.multiheadAttn = attention(o);
    this.linear1 = dense(o.dModel, o.dimFeedforward, o);
    this.dropout = new Dropout(o.dropout);
    this.linear2 = dense(o.dimFeedforward, o.dModel, o);
    this.norm1 = norm(o);
    this.norm2 = norm(o);
    this.norm3 = norm(o);
    this.dropout1 = new Dropout(o.dropout);
    this.dropout2 = new Dropout(o.dropout);
    this.dropout3 = new Dropout(o.dropout);
  }
  forward(...args: DecoderLayerArgs): Tensor {
    const o = bind<DecoderFields>(
      "TransformerDecoderLayer",
      args,
      ["tgt", "memory"],
      decoderDefaults,
    );
    checkTensor(o.tgt, "TransformerDecoderLayer", "tgt");
    const own = (x: Tensor) => {
      const masks = {
        attnMask: o.tgtMask,
        keyPaddingMask: o.tgtKeyPaddingMask,
        needWeights: false,
      };
      return this.dropout1(this.selfAttn(x, x, x, masks)[0]);
    };
    const other = (x: Tensor) => {
      const masks = {
        attnMask: o.memoryMask,
        keyPaddingMask: o.memoryKeyPaddingMask,
        needWeights: false,
      };
      return this.dropout2(this.multiheadAttn(x, o.memory, o.memory, masks)[0]);
    };
    const feed = (x: Tensor) => this.dropout3(this.feedForward(x));
    let x = o.tgt;
    if (this._init.normFirst) {
      x = x.add(own(this.norm1(x)));
      x = x.add(other(this.norm2(x)));
      return x.add(feed(this.norm3(x)));
    }
    x = this.norm1(x.add(own(x)));
    x = this.norm2(x.add(other(x)));
    return this.norm3(x.add(feed(x)));
  }
  /** @internal Another layer of the same kind with the same weights. */
  _copy(): TransformerDecoderLayer {
    const { dModel, nhead, ...rest } = this._init;
    // The weights are replaced: drawing them must not move the generator on.
    const copy = forkRng(() => new TransformerDecoderLayer(dModel, nhead, rest));
    copy.loadStateDict(this.stateDict());
    return copy;
  }
}

type EncoderArgs = Init<
  [src: Tensor],
  [mask: Tensor | null, srcKeyPaddingMask: Tensor | null, isCausal: boolean | null],
  { mask?: Tensor | null; srcKeyPaddingMask?: Tensor | null; isCausal?: boolean | null }
>;

/** Copies of a layer for a stack called `name`. */
function copies<L extends AnyModule & { _copy(): L }>(
  name: string,
  Layer: abstract new (...args: never[]) => L,
  layer: L,
  numLayers: number,
): ModuleList<L> {
  if (!(layer instanceof Layer)) {
    throw new TypeError_(`${name}: expected a ${Layer.name}, got ${describe(layer)}`);
  }
  const length = layerCount(numLayers, 0, name, "numLayers");
  return new ModuleList(Array.from({ length }, () => layer._copy()));
}

function checkNorm(name: string, norm: unknown): void {
  if (norm === null || typeof norm === "function") return;
  throw new TypeError_(`${name}: expected a Module or null for "norm", got ${describe(norm)}`);
}

/** Copies of an encoder layer, one after the other. */
export class TransformerEncoder extends Module<EncoderArgs, Tensor> {
  layers: ModuleList<TransformerEncoderLayer>;
  norm: LayerNorm | null;
  constructor(layer: TransformerEncoderLayer, numLayers: number, norm: LayerNorm | null = null) {
    super();
    const name = "TransformerEncoder";
    checkNorm(name, norm);
    this.layers = copies(name, TransformerEncoderLayer, layer, numLayers);
    this.norm = norm;
  }
  forward(...args: EncoderArgs): Tensor {
    const o = bind<{ src: Tensor; mask: Tensor | null; srcKeyPaddingMask: Tensor | null }>(
      "TransformerEncoder",
      args,
      ["src"],
      { mask: null, srcKeyPaddingMask: null, isCausal: null },
    );
    let x = o.src;
    for (const layer of this.layers) x = layer(x, o.mask, o.srcKeyPaddingMask);
    return this.norm ? this.norm(x) : x;
  }
}

/** Copies of a decoder layer, one after the other. */
export class TransformerDecoder extends Module<DecoderLayerArgs, Tensor> {
  layers: ModuleList<TransformerDecoderLayer>;
  norm: LayerNorm | null;
  constructor(layer: TransformerDecoderLayer, numLayers: number, norm: LayerNorm | null = null) {
    super();
    const name = "TransformerDecoder";
    checkNorm(name, norm);
    this.layers = copies(name, TransformerDecoderLayer, layer, numLayers);
    this.norm = norm;
  }
  forward(...args: DecoderLayerArgs): Tensor {
    const { tgt, memory, ...masks } = bind<DecoderFields>(
      "TransformerDecoder",
      args,
      ["tgt", "memory"],
      decoderDefaults,
    );
    let x = tgt;
    for (const layer of this.layers) x = layer(x, memory, masks);
    return this.norm ? this.norm(x) : x;
  }
}

export interface TransformerOptions extends TransformerLayerOptions {
  dModel?: number;
  nhead?: number;
  numEncoderLayers?: number;
  numDecoderLayers?: number;
}
export interface TransformerMasks extends DecoderLayerMasks {
  srcMask?: Tensor | null;
  srcKeyPaddingMask?: Tensor | null;
  srcIsCausal?: boolean | null;
}
type TransformerArgs = Init<
  [src: Tensor, tgt: Tensor],
  [srcMask: Tensor | null, tgtMask: Tensor | null, memoryMask: Tensor | null],
  TransformerMasks
>;

/** Encoder and decoder; Vaswani et al. (2017). */
export class Transformer extends Module<TransformerArgs, Tensor> {
  encoder: TransformerEncoder;
  decoder: TransformerDecoder;
  constructor(
    ...args: Init<
      [],
      [dModel: number, nhead: number, numEncoderLayers: number, numDecoderLayers: number],
      TransformerOptions
    >
  ) {
    super();
    const o = bind<Required<TransformerOptions>>("Transformer", args, [], {
      dModel: 512,
      nhead: 8,
      numEncoderLayers: 6,
      numDecoderLayers: 6,
      ...layerDefaults,
    });
    const { dModel, nhead, numEncoderLayers, numDecoderLayers, ...rest } = o;
    const encoderLayer = new TransformerEncoderLayer(dModel, nhead, rest);
    this.encoder = new TransformerEncoder(encoderLayer, numEncoderLayers, norm(o));
    const decoderLayer = new TransformerDecoderLayer(dModel, nhead, rest);
    this.decoder = new TransformerDecoder(decoderLayer, numDecoderLayers, norm(o));
    for (const p of this.parameters()) if (p.ndim > 1) xavierUniform_(p);
  }
  /** A mask [size, size] that hides what comes later: -inf above the diagonal. */
  static generateSquareSubsequentMask(size: number): Tensor {
    const n = int(size, "generateSquareSubsequentMask", "size");
    return ops.triu(ops.full([n, n], -Infinity, { dtype: float32 }), 1);
  }
  forward(...args: TransformerArgs): Tensor {
    const o = bind<Required<TransformerMasks> & { src: Tensor; tgt: Tensor }>(
      "Transformer",
      args,
      ["src", "tgt"],
      {
        srcMask: null,
        tgtMask: null,
        memoryMask: null,
        srcKeyPaddingMask: null,
        tgtKeyPaddingMask: null,
        memoryKeyPaddingMask: null,
        srcIsCausal: null,
        tgtIsCausal: null,
        memoryIsCausal: false,
      },
    );
    const memory = this.encoder(o.src, o.srcMask, o.srcKeyPaddingMask);
    return this.decoder(o.tgt, memory, {
      tgtMask: o.tgtMask,
      memoryMask: o.memoryMask,
      tgtKeyPaddingMask: o.tgtKeyPaddingMask,
      memoryKeyPaddingMask: o.memoryKeyPaddingMask,
    });
  }
}
