// torch.nn.functional: multi-head attention; Vaswani et al., "Attention is all you need" (2017).
import { bool } from "../dtype.js";
import { ShapeError, TypeError_, ValueError } from "../errors.js";
import { checkTensor, idOrNone, int } from "../frame.js";
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";
import { bind, placed } from "./bind.js";

/** Options of `multiHeadAttentionForward`. */
export interface AttentionForwardOptions {
  /** Whether dropout is active. */
  training?: boolean;
  /** [N, S]; true (or an added number) for keys to leave out. */
  keyPaddingMask?: Tensor | null;
  needWeights?: boolean;
  /** [L, S] or [N · heads, L, S]; true for pairs to leave out, or numbers to add. */
  attnMask?: Tensor | null;
  /** Whether query, key and value have weights of their own instead of parts of inProjWeight. */
  useSeparateProjWeight?: boolean;
  qProjWeight?: Tensor | null;
  kProjWeight?: Tensor | null;
  vProjWeight?: Tensor | null;
  /** Projected keys [N · heads, S, E / heads] instead of those of `key`. */
  staticK?: Tensor | null;
  staticV?: Tensor | null;
  averageAttnWeights?: boolean;
  /** A hint that attnMask is the causal one. */
  isCausal?: boolean;
}

const defaults: Required<AttentionForwardOptions> = {
  training: true,
  keyPaddingMask: null,
  needWeights: true,
  attnMask: null,
  useSeparateProjWeight: false,
  qProjWeight: null,
  kProjWeight: null,
  vProjWeight: null,
  staticK: null,
  staticV: null,
  averageAttnWeights: true,
  isCausal: false,
};

interface Weights {
  embedDim: number;
  numHeads: number;
  inProjWeight: Tensor | null;
  inProjBias: Tensor | null;
  biasK: Tensor | null;
  biasV: Tensor | null;
  addZeroAttn: boolean;
  dropoutP: number;
  outProjWeight: Tensor;
  outProjBias: Tensor | null;
}
type Options = Required<AttentionForwardOptions>;

/** A mask as numbers to add: a bool mask gives -inf where it is true. */
function additive(mask: Tensor, like: Tensor): Tensor {
  if (mask.dtype !== bool) return mask.to(like.dtype);
  const zeros = ops.zeros(mask.shape, placed({ device: like.device, dtype: like.dtype }));
  return zeros.maskedFill_(mask, -Infinity);
}

/** Query, key and value, [L, N, E] each. */
function project(inputs: readonly Tensor[], w: Weights, o: Options): Tensor[] {
  const own = [o.qProjWeight, o.kProjWeight, o.vProjWeight];
  return inputs.map((input, i) => {
    const part = (t: Tensor) => t.narrow(0, i * w.embedDim, w.embedDim);
    const weight = o.useSeparateProjWeight ? own[i] : w.inProjWeight && part(w.inProjWeight);
    if (!weight) throw new TypeError_("multiHeadAttentionForward: a projection has no weight");
    return ops.linear(input, weight, w.inProjBias && part(w.inProjBias));
  });
}

/** Attention of projected [L, N, E]: the output before its projection, and weights. */
function attend([q, k, v]: Tensor[], w: Weights, o: Options): { joined: Tensor; weights: Tensor } {
  const [length, n] = q!.shape as [number, number];
  const heads = w.numHeads;
  const size = w.embedDim / heads;
  const split = (t: Tensor) => t.reshape([t.size(0), n * heads, size]).transpose(0, 1);
  // An extra key and value, which no mask leaves out.
  let added = 0;
  const extend = (t: Tensor, extra: Tensor | null, dim: number) =>
    extra ? ops.cat([t, extra], dim) : t;
  const extra = (bias: Tensor | null) => bias && bias.expand([1, n, w.embedDim]);
  let ks = o.staticK ?? split(extend(k!, extra(w.biasK), 0));
  let vs = o.staticV ?? split(extend(v!, extra(w.biasV), 0));
  if (w.biasK && w.biasV) added++;
  if (w.addZeroAttn) {
    const zeros = ops.zeros([n * heads, 1, size], placed({ device: q!.device, dtype: q!.dtype }));
    ks = extend(ks, zeros, 1);
    vs = extend(vs, zeros, 1);
    added++;
  }
  let scores = ops.bmm(split(q!).mul(Math.sqrt(1 / size)), ks.transpose(1, 2));
  const source = ks.size(1);
  const widen = (mask: Tensor): Tensor => {
    const m = additive(mask, q!);
    if (added === 0) return m;
    const place = placed({ device: m.device, dtype: m.dtype });
    return ops.cat([m, ops.zeros([...m.shape.slice(0, -1), added], place)], -1);
  };
  if (o.attnMask) scores = scores.add(widen(o.attnMask));
  if (o.keyPaddingMask) {
    const m = widen(o.keyPaddingMask).reshape([n, 1, 1, source]);
    scores = scores.reshape([n, heads, length, source]).add(m).reshape(scores.shape);
  }
  let weights = ops.softmax(scores, -1);
  if (w.dropoutP > 0 && o.training) weights = ops.dropout(weights, w.dropoutP, true);
  const joined = ops.bmm(weights, vs).transpose(0, 1).reshape([length, n, w.embedDim]);
  return { joined, weights: weights.reshape([n, heads, length, source]) };
}

function checkAll(op: string, needed: object, optional: object, o: Options): void {
  const { attnMask, keyPaddingMask, staticK, staticV } = o;
  const more = { ...optional, attnMask, keyPaddingMask, staticK, staticV };
  for (const [name, t] of Object.entries(needed)) checkTensor(t, op, name);
  for (const [name, t] of Object.entries(more)) idOrNone(t, op, name);
}

/**
 * Attention in several heads, with the projections before and after it: query [L, N, E] or [L, E],
 * key and value [S, N, .]. Gives the output, and the weights after dropout or null.
 */
export function multiHeadAttentionForward(
  query: Tensor,
  key: Tensor,
  value: Tensor,
  embedDimToCheck: number,
  numHeads: number,
  inProjWeight: Tensor | null,
  inProjBias: Tensor | null,
  biasK: Tensor | null,
  biasV: Tensor | null,
  addZeroAttn: boolean,
  dropoutP: number,
  outProjWeight: Tensor,
  outProjBias: Tensor | null,
  ...rest: [AttentionForwardOptions?] | unknown[]
): [output: Tensor, weights: Tensor | null] {
  const op = "multiHeadAttentionForward";
  const o = bind<Options>(op, rest, [], defaults);
  if (o.isCausal && o.attnMask === null) {
    throw new TypeError_(`${op}: isCausal is a hint and needs attnMask`);
  }
  checkAll(op, { query, key, value }, { inProjWeight, inProjBias, biasK, biasV }, o);
  numHeads = int(numHeads, op, "numHeads");
  const single = query.ndim === 2;
  if (!single && query.ndim !== 3) {
    throw new ShapeError(`${op}: expected a query of 2 or 3 dims, got shape [${query.shape}]`);
  }
  const embedDim = query.size(-1);
  if (embedDim !== embedDimToCheck || embedDim % numHeads !== 0) {
    throw new ValueError(
      `${op}: expected ${embedDimToCheck} features in ${numHeads} heads, ` +
        `got shape [${query.shape}]`,
    );
  }
  const inputs = [query, key, value].map((t) => (single ? t.unsqueeze(1) : t));
  if (single && o.keyPaddingMask) o.keyPaddingMask = o.keyPaddingMask.unsqueeze(0);
  const w: Weights = {
    embedDim,
    numHeads,
    inProjWeight,
    inProjBias,
    biasK,
    biasV,
    addZeroAttn,
    dropoutP,
    outProjWeight,
    outProjBias,
  };
  const { joined, weights } = attend(project(inputs, w, o), w, o);
  const output = ops.linear(joined, outProjWeight, outProjBias);
  const out = single ? output.select(1, 0) : output;
  if (!o.needWeights) return [out, null];
  const shown = o.averageAttnWeights ? weights.sum(1).div(numHeads) : weights;
  return [out, single ? shown.select(0, 0) : shown];
}
