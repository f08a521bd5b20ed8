// Gives the parts that know no tensors (files, data loading) the functions that make them.
import { fromBytes, tensor, toBytes } from "./convert.js";
import { connectData, type GeneratorLike } from "./data.js";
import { dtypeOf, int64 } from "./dtype.js";
import { Generator } from "./generator.js";
import * as ops from "./ops.gen.js";
import { Serializer } from "./serialization.js";
import { Tensor } from "./tensor.js";

const serializer = new Serializer<Tensor>({
  isTensor: (value) => value instanceof Tensor,
  dtype: (t) => t.dtype.name,
  shape: (t) => t.shape,
  toBytes,
  fromBytes: (dtype, shape, bytes) => fromBytes(dtypeOf(dtype), shape, bytes),
});

export const { saveFile, loadFile, toSafetensors, save, load } = serializer;

const own = (generator: GeneratorLike | null) => generator as Generator | null;

connectData({
  isTensor: (value): value is Tensor => value instanceof Tensor,
  stack: (tensors) => ops.stack(tensors),
  tensor: (values) => tensor(values as never),
  indices: (values) => tensor(BigInt64Array.from(values, BigInt), { dtype: int64 }),
  randperm: (n, generator) => {
    const order = ops.randperm(n, { generator: own(generator) });
    return Array.from(order.data(), Number);
  },
  randomSeed: (generator) => {
    const seed = ops.empty([], { dtype: int64 });
    return BigInt(ops._random_(seed, null, null, { generator: own(generator) }).item() as number);
  },
  seededGenerator: (seed) => new Generator().manualSeed(seed),
});
