// Torch's names, whatever host the core runs on: index.ts and web.ts add that.
import { installAliases } from "./aliases.js";
import { install } from "./arguments.js";
import { backend, onConnect } from "./backend.js";
import { installChoosing } from "./choosing.js";
import { InternalError } from "./errors.js";
import { nameClasses } from "./names.js";
import * as nn from "./nn/index.js";
import * as ops from "./ops.gen.js";
import * as optim from "./optim/index.js";
import { installProducts } from "./products.js";
import { castMethods } from "./casts.js";
import { streamMethods } from "./cuda/streams.js";
import { randomMethods } from "./random.js";
import { shapeMethods } from "./shape.js";
import { installReductions } from "./reduce.js";
import { Tensor } from "./tensor.js";

onConnect((core) => {
  if (core.rollHash() === ops.rollHash) return;
  throw new InternalError(
    'cresset: the core and the TypeScript side are of different builds; run "npm run build"',
  );
});
ops.installMethods(Tensor.prototype);
installAliases(Tensor.prototype);
installChoosing(Tensor.prototype);
installProducts(Tensor.prototype);
install(Tensor.prototype, {
  ...castMethods,
  ...randomMethods,
  ...shapeMethods,
  ...streamMethods,
});
installReductions(Tensor.prototype);
nameClasses(nn, optim, optim.lrScheduler);

export { Tensor } from "./tensor.js";
export type { BackwardOptions } from "./tensor.js";
export type { ToOptions } from "./casts.js";
export * from "./torch.gen.js";
export * from "./errors.js";
export {
  asFloat,
  bfloat16,
  bool,
  cdouble,
  cfloat,
  channelsLast,
  channelsLast3d,
  Complex,
  complex64,
  complex128,
  complexScalar,
  contiguousFormat,
  Device,
  device,
  double,
  DType,
  float,
  float16,
  float32,
  float64,
  FloatScalar,
  half,
  int,
  int16,
  int32,
  int64,
  int8,
  long,
  preserveFormat,
  short,
  strided,
  uint8,
} from "./dtype.js";
export type { DeviceLike, Scalar } from "./dtype.js";
export { frombuffer, tensor } from "./convert.js";
export type { Nested, TensorData, TensorOptions, TypedArray } from "./convert.js";
export { arange } from "./creation.js";
export {
  bartlettWindow,
  blackmanWindow,
  hammingWindow,
  hannWindow,
  kaiserWindow,
} from "./windows.js";
export type { WindowOptions } from "./windows.js";
export { Generator } from "./generator.js";
export {
  getRngState,
  initialSeed,
  manualSeed,
  normal,
  randint,
  randintLike,
  seed,
  setRngState,
} from "./random.js";
export * as random from "./random.js";
export {
  atleast1d,
  atleast2d,
  atleast3d,
  blockDiag,
  broadcastShapes,
  broadcastTensors,
  cartesianProd,
  combinations,
  dsplit,
  hsplit,
  meshgrid,
  repeatInterleave,
  split,
  tensorSplit,
  vsplit,
} from "./shape.js";
export { enableGrad, noGrad, setGradEnabled } from "./autograd.js";
export * as autograd from "./autograd.js";
export * as linalg from "./linalg.js";
export * as fft from "./fft.js";
export * as special from "./special.js";
export { polygamma } from "./special.js";
export {
  absolute,
  arccos,
  arccosh,
  arcsin,
  arcsinh,
  arctan,
  arctan2,
  arctanh,
  divide,
  fix,
  greater,
  greaterEqual,
  less,
  lessEqual,
  multiply,
  negative,
  notEqual,
  subtract,
} from "./aliases.js";
export { init } from "./backend.js";
export type { InitOptions } from "./backend.js";
export { dispose, keep, tidy } from "./tidy.js";
export * as memory from "./memory.js";
export * as cuda from "./cuda/index.js";
export * as backends from "./cuda/backends_namespace.js";
export {
  areDeterministicAlgorithmsEnabled,
  getFloat32MatmulPrecision,
  setFloat32MatmulPrecision,
  useDeterministicAlgorithms,
} from "./cuda/backends.js";
export type { MatmulPrecision } from "./cuda/backends.js";
export { conv1d, conv2d, conv3d, maxPool1d, maxPool2d, maxPool3d } from "./nn/functional_conv.js";
export { adaptiveAvgPool1d, adaptiveMaxPool1d } from "./nn/functional_pool.js";
export { chainMatmul, einsum, lu, tensordot } from "./products.js";
export type { ContractedDims } from "./products.js";
export * as nn from "./nn/index.js";
export * as optim from "./optim/index.js";
export * as utils from "./utils.js";
export { load, loadFile, save, saveFile, toSafetensors } from "./connect.js";
export * from "./utils_data.js";
export { Progress } from "./progress.js";
export type { ProgressOptions } from "./progress.js";
export {
  gradient,
  histogramdd,
  median,
  nanmedian,
  nonzero,
  unique,
  uniqueConsecutive,
  where,
} from "./choosing.js";
export type { GradientOptions, UniqueConsecutiveOptions, UniqueOptions } from "./choosing.js";
export { max, min, norm, std, stdMean, var, varMean } from "./reduce.js";
export { Slice, slice } from "./indexing.js";
export type { Index } from "./indexing.js";
export { setPrintoptions } from "./print.js";

/** Number of CPU threads; setNumThreads changes it. */
export function getNumThreads(): number {
  return backend.threads();
}
export function setNumThreads(n: number): void {
  backend.threads(n);
}

/** The operators' schemas as JSON: for tools and tests. */
export function _schemas(): string {
  return backend.schemas();
}
