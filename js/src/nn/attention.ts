// Multi-head attention.
import { bool } from "../dtype.js";
import { ShapeError, TypeError_, ValueError } from "../errors.js";
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";
import { bind, factory, placed, type Factory, type Init } from "./bind.js";
import { functional } from "./functional_lookup.js";
import { constant_, xavierNormal_, xavierUniform_ } from "./init.js";
import { Linear, parameter } from "./linear.js";
import { Module } from "./module.js";
import type { Parameter } from "./parameter.js";

const linear = functional("linear");
const softmax = functional("softmax");
const dropout = functional("dropout");
const cat = functional("cat");

export interface MultiheadAttentionOptions extends Factory {
  dropout?: number;
  bias?: boolean;
  /** Learned extra key and value. */
  addBiasKv?: boolean;
  /** An extra key and value of zeros. */
  addZeroAttn?: boolean;
  /** Features of keys and values (default: embedDim). */
  kdim?: number | null;
  vdim?: number | null;
  /** Tensors are [N, L, E] instead of [L, N, E]. */
  batchFirst?: boolean;
}

export interface AttentionOptions {
  /** [N, S]; true (or an added number) for keys to leave out. */
  keyPaddingMask?: Tensor | null;
  needWeights?: boolean;
  /** [L, S] or [N · heads, L, S]; true for pairs to leave out, or numbers to add. */
  attnMask?: Tensor | null;
  averageAttnWeights?: boolean;
  /** A hint that attnMask is the causal one. */
  isCausal?: boolean;
}

type AttentionArgs = Init<
  [query: Tensor, key: Tensor, value: Tensor],
  [
    keyPaddingMask: Tensor | null,
    needWeights: boolean,
    attnMask: Tensor | null,
    averageAttnWeights: boolean,
    isCausal: boolean,
  ],
  AttentionOptions
>;

const stateNames = {
  inProjWeight: "in_proj_weight",
  qProjWeight: "q_proj_weight",
  kProjWeight: "k_proj_weight",
  vProjWeight: "v_proj_weight",
  inProjBias: "in_proj_bias",
  biasK: "bias_k",
  biasV: "bias_v",
  outProj: "out_proj",
};

/** A mask as numbers to add: a bool mask gives -inf where it is true. */
function additive(mask: Tensor, like: Tensor): Tensor {
  if (mask.dtype !== bool) return mask.to(like.dtype);
  const zeros = ops.zeros(mask.shape, placed({ device: like.device, dtype: like.dtype }));
  return zeros.maskedFill_(mask, -Infinity);
}

/** Vaswani et al., "Attention is all you need" (2017). Returns [output, weights or null]. */
export class MultiheadAttention extends Module<AttentionArgs, [Tensor, Tensor | null]> {
  readonly embedDim: number;
  readonly numHeads: number;
  readonly dropout: number;
  readonly batchFirst: boolean;
  readonly addZeroAttn: boolean;
  inProjWeight: Parameter | null;
  qProjWeight: Parameter | null;
  kProjWeight: Parameter | null;
  vProjWeight: Parameter | null;
  inProjBias: Parameter | null;
  biasK: Parameter | null;
  biasV: Parameter | null;
  outProj: Linear;

  constructor(
    ...args: Init<
      [embedDim: number, numHeads: number],
      [dropout: number, bias: boolean, addBiasKv: boolean, addZeroAttn: boolean],
      MultiheadAttentionOptions
    >
  ) {
    super();
    const o = bind<Required<MultiheadAttentionOptions> & { embedDim: number; numHeads: number }>(
      "MultiheadAttention",
      args,
      ["embedDim", "numHeads"],
      {
        dropout: 0,
        bias: true,
        addBiasKv: false,
        addZeroAttn: false,
        kdim: null,
        vdim: null,
        batchFirst: false,
        ...factory,
      },
    );
    const e = o.embedDim;
    if (!(o.numHeads > 0) || e % o.numHeads !== 0) {
      throw new ValueError(
        `MultiheadAttention: expected embedDim divisible by numHeads ${o.numHeads}, got ${e}`,
      );
    }
    this.embedDim = e;
    this.numHeads = o.numHeads;
    this.dropout = o.dropout;
    this.batchFirst = o.batchFirst;
    this.addZeroAttn = o.addZeroAttn;
    const [kdim, vdim] = [o.kdim ?? e, o.vdim ?? e];
    const same = kdim === e && vdim === e;
    this.inProjWeight = same ? parameter([3 * e, e], o) : null;
    this.qProjWeight = same ? null : parameter([e, e], o);
    this.kProjWeight = same ? null : parameter([e, kdim], o);
    this.vProjWeight = same ? null : parameter([e, vdim], o);
    this.inProjBias = o.bias ? parameter([3 * e], o) : null;
    this.biasK = o.addBiasKv ? parameter([1, 1, e], o) : null;
    this.biasV = o.addBiasKv ? parameter([1, 1, e], o) : null;
    this.outProj = new Linear(e, e, { bias: o.bias, device: o.device, dtype: o.dtype });
    this.resetParameters();
  }
  override get _stateNames(): Readonly<Record<string, string>> {
    return stateNames;
  }
  resetParameters(): void {
    for (const w of [this.inProjWeight, this.qProjWeight, this.kProjWeight, this.vProjWeight]) {
      if (w) xavierUniform_(w);
    }
    if (this.inProjBias) constant_(this.inProjBias, 0);
    if (this.inProjBias && this.outProj.bias) constant_(this.outProj.bias, 0);
    if (this.biasK) xavierNormal_(this.biasK);
    if (this.biasV) xavierNormal_(this.biasV);
  }

  /** Query, key and value, [L, N, E] each. */
  private project(q: Tensor, k: Tensor, v: Tensor): [Tensor, Tensor, Tensor] {
    const e = this.embedDim;
    const part = (i: number, own: Parameter | null) =>
      own ?? this.inProjWeight!.narrow(0, i * e, e);
    const bias = (i: number) => this.inProjBias?.narrow(0, i * e, e) ?? null;
    return [
      linear(q, part(0, this.qProjWeight), bias(0)),
      linear(k, part(1, this.kProjWeight), bias(1)),
      linear(v, part(2, this.vProjWeight), bias(2)),
    ];
  }

  forward(...args: AttentionArgs): [Tensor, Tensor | null] {
    const o = bind<Required<AttentionOptions> & { query: Tensor; key: Tensor; value: Tensor }>(
      "MultiheadAttention",
      args,
      ["query", "key", "value"],
      {
        keyPaddingMask: null,
        needWeights: true,
        attnMask: null,
        averageAttnWeights: true,
        isCausal: false,
      },
    );
    if (o.isCausal && o.attnMask === null) {
      throw new TypeError_("MultiheadAttention: isCausal is a hint and needs attnMask");
    }
    const single = o.query.ndim === 2;
    if (!single && o.query.ndim !== 3) {
      throw new ShapeError(
        `MultiheadAttention: expected a query of 2 or 3 dims, got shape [${o.query.shape}]`,
      );
    }
    const arrange = (t: Tensor) =>
      single ? t.unsqueeze(1) : this.batchFirst ? t.transpose(0, 1) : t;
    const padding = single && o.keyPaddingMask ? o.keyPaddingMask.unsqueeze(0) : o.keyPaddingMask;
    const qkv = this.project(arrange(o.query), arrange(o.key), arrange(o.value));
    const { output, weights } = this.attend(qkv, padding, o.attnMask);
    const out = single ? output.select(1, 0) : this.batchFirst ? output.transpose(0, 1) : output;
    if (!o.needWeights) return [out, null];
    const shown = o.averageAttnWeights ? weights.sum(1).div(this.numHeads) : weights;
    return [out, single ? shown.select(0, 0) : shown];
  }

  private attend(
    [q, k, v]: [Tensor, Tensor, Tensor],
    padding: Tensor | null,
    attnMask: Tensor | null,
  ): { output: Tensor; weights: Tensor } {
    const [length, n] = q.shape as [number, number];
    const heads = this.numHeads;
    const size = this.embedDim / heads;
    let added = 0;
    if (this.biasK && this.biasV) {
      k = cat([k, this.biasK.expand([1, n, this.embedDim])], 0);
      v = cat([v, this.biasV.expand([1, n, this.embedDim])], 0);
      added++;
    }
    const split = (t: Tensor) => t.reshape([t.size(0), n * heads, size]).transpose(0, 1);
    let [qs, ks, vs] = [split(q), split(k), split(v)];
    if (this.addZeroAttn) {
      const zeros = ops.zeros([n * heads, 1, size], placed({ device: q.device, dtype: q.dtype }));
      ks = cat([ks, zeros], 1);
      vs = cat([vs, zeros], 1);
      added++;
    }
    let scores = ops.bmm(qs.mul(Math.sqrt(1 / size)), ks.transpose(1, 2));
    const source = ks.size(1);
    const widen = (mask: Tensor): Tensor => {
      const m = additive(mask, q);
      if (added === 0) return m;
      const zeros = ops.zeros([...m.shape.slice(0, -1), added], placed({ dtype: m.dtype }));
      return cat([m, zeros], -1);
    };
    if (attnMask) scores = scores.add(widen(attnMask));
    if (padding) {
      const m = widen(padding).reshape([n, 1, 1, source]);
      scores = scores.reshape([n, heads, length, source]).add(m).reshape(scores.shape);
    }
    const weights = softmax(scores, -1);
    const used = this.dropout > 0 ? dropout(weights, this.dropout, this.training) : weights;
    const joined = ops.bmm(used, vs).transpose(0, 1).reshape([length, n, this.embedDim]);
    return {
      output: this.outProj(joined),
      weights: weights.reshape([n, heads, length, source]),
    };
  }
}
