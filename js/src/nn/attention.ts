// Multi-head attention.
import { ValueError } from "../errors.js";
import { checkTensor, int } from "../frame.js";
import type { Tensor } from "../tensor.js";
import { bind, factory, type Factory, type Init } from "./bind.js";
import { multiHeadAttentionForward as attentionForward } from "./functional_attention.js";
import { constant_, xavierNormal_, xavierUniform_ } from "./init.js";
import { Linear, parameter } from "./linear.js";
import { Module } from "./module.js";
import type { Parameter } from "./parameter.js";

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
    const e = int(o.embedDim, "MultiheadAttention", "embedDim");
    const numHeads = int(o.numHeads, "MultiheadAttention", "numHeads");
    if (numHeads <= 0 || e % numHeads !== 0) {
      throw new ValueError(
        `MultiheadAttention: expected embedDim divisible by numHeads ${numHeads}, got ${e}`,
      );
    }
    this.embedDim = e;
    this.numHeads = numHeads;
    this.dropout = o.dropout;
    this.batchFirst = o.batchFirst;
    this.addZeroAttn = o.addZeroAttn;
    const kdim = int(o.kdim ?? e, "MultiheadAttention", "kdim");
    const vdim = int(o.vdim ?? e, "MultiheadAttention", "vdim");
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
    for (const key of ["query", "key", "value"] as const) {
      checkTensor(o[key], "MultiheadAttention", key);
    }
    const arrange = (t: Tensor) => (this.batchFirst && t.ndim === 3 ? t.transpose(0, 1) : t);
    const [output, weights] = attentionForward(
      ...([arrange(o.query), arrange(o.key), arrange(o.value)] as const),
      this.embedDim,
      this.numHeads,
      this.inProjWeight,
      this.inProjBias,
      this.biasK,
      this.biasV,
      this.addZeroAttn,
      this.dropout,
      this.outProj.weight,
      this.outProj.bias,
      {
        training: this.training,
        keyPaddingMask: o.keyPaddingMask,
        needWeights: o.needWeights,
        attnMask: o.attnMask,
        useSeparateProjWeight: this.inProjWeight === null,
        qProjWeight: this.qProjWeight,
        kProjWeight: this.kProjWeight,
        vProjWeight: this.vProjWeight,
        averageAttnWeights: o.averageAttnWeights,
        isCausal: o.isCausal,
      },
    );
    return [arrange(output), weights];
  }
}
