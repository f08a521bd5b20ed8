// Gives the parts that know no tensors (files, data loading) the functions that make them.
import { fromBytes, toBytes } from "./convert.js";
import { dtypeOf } from "./dtype.js";
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
