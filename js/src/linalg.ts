// torch.linalg.
export * from "./linalg.gen.js";
export {
  linalgCond as cond,
  linalgMatrixNorm as matrixNorm,
  linalgNorm as norm,
} from "./reduce.js";
