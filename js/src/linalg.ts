// torch.linalg.
export * from "./linalg.gen.js";
export { linalgMatrixNorm as matrixNorm, linalgNorm as norm } from "./reduce.js";
