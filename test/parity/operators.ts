// How each recorded operator is called: as a function, as a method and in place.
import { camelCase, fn, isTensor, lookUp, method, Missing } from "./api.js";

export type Arguments = Record<string, unknown>;

/** Calls one form of an operator. */
export type Call = (args: unknown[], kwargs: Arguments) => unknown;

/** Named arguments go in one trailing object. */
export function withNames(args: unknown[], kwargs: Arguments): unknown[] {
  return Object.keys(kwargs).length > 0 ? [...args, kwargs] : args;
}

const call = (path: string, args: unknown[], kwargs: Arguments) =>
  fn(path)(...withNames(args, kwargs));

const callMethod = (name: string, args: unknown[], kwargs: Arguments) => {
  const [self, ...rest] = args;
  return method(self, name, ...withNames(rest, kwargs));
};

/** Operators that exist in PyTorch as methods alone. */
const methodsOnly = new Set(
  (
    "bfloat16 bool byte cdouble cfloat chalf char contiguous double expand expand_as float half " +
    "int item long new_empty new_empty_strided new_full new_ones new_zeros repeat reshape_as " +
    "short sum_to_size to unfold view view_as"
  ).split(" "),
);

/** Recorded through their in-place form, on a copy. */
const inPlaceOnly = new Set([
  "cauchy",
  "exponential",
  "geometric",
  "log_normal",
  "normal.in_place",
  "resize_",
  "resize_as_",
  "uniform",
  "zero_",
]);

const properties = new Set(["H", "T", "mH", "mT"]);

/** `other op self` of Python's reflected operators. */
const reflected: Record<string, string> = {
  __radd__: "add",
  __rand__: "bitwiseAnd",
  __rdiv__: "div",
  __rmatmul__: "matmul",
  __rmod__: "remainder",
  __rmul__: "mul",
  __ror__: "bitwiseOr",
  __rpow__: "pow",
  __rsub__: "sub",
  __rxor__: "bitwiseXor",
};

const times = (a: unknown, b: unknown) => method(a, "matmul", method(b, "transpose", -2, -1));

const swapped =
  (path: string): Call =>
  ([a, b, ...rest], kwargs) =>
    call(path, [b, a, ...rest], kwargs);

/** Recorded with a gradient of ones for the pooled result. */
const poolBackward: Call = ([self], { returnIndices: _, ...window }) => {
  const pooled = call("nn.functional.maxPool2d", [self], { ...window, returnIndices: true });
  const [out, indices] = [...(pooled as Iterable<unknown>)];
  const { kernelSize, stride, padding, dilation, ceilMode } = window;
  const ones = fn("onesLike")(out);
  const step = stride ?? kernelSize;
  return fn("maxPool2dWithIndicesBackward")(
    ...[ones, self, kernelSize, step, padding ?? 0, dilation ?? 1, ceilMode ?? false, indices],
  );
};

/** Recorded with arguments in another order than the function takes, or on a product. */
const adapted: Record<string, Call> = {
  einsum: swapped("einsum"),
  "linalg.lstsq.grad_oriented": (args, kwargs) =>
    [...(call("linalg.lstsq", args, kwargs) as Iterable<unknown>)].slice(0, 2),
  "linalg.pinv.singular": ([a, b]) => call("linalg.pinv", [times(a, b)], {}),
  max_pool2d_with_indices_backward: poolBackward,
  "nn.functional.embedding": swapped("nn.functional.embedding"),
  "nn.functional.embedding_bag": swapped("nn.functional.embeddingBag"),
  "normal.number_mean": swapped("normal"),
  pca_lowrank: ([a, b], kwargs) => call("pcaLowrank", [times(a, b)], kwargs),
  polygamma: swapped("polygamma"),
  // PyTorch's own sample table calls randn_like under this name.
  rand_like: (args, kwargs) => call("randnLike", args, kwargs),
  slice: (args, kwargs) => callMethod("slice", args, kwargs),
  "special.polygamma": swapped("special.polygamma"),
  svd_lowrank: ([a, b], kwargs) => call("svdLowrank", [times(a, b)], kwargs),
  where: swapped("where"),
};

/** Every name below `torch.` as the API spells it: `linalg.vector_norm`, `linalg.vectorNorm`. */
const apiPath = (op: string) => op.split(".").map(camelCase).join(".");

/** The function form of an operator, by its name and the variant of the recording. */
export function functionForm(op: string, variant: string): Call {
  const full = variant ? `${op}.${variant}` : op;
  const special = adapted[full] ?? adapted[op];
  if (special) return special;
  if (inPlaceOnly.has(full)) {
    const name = camelCase(op.replace(/_?$/, "_"));
    return ([self, ...rest], kwargs) => callMethod(name, [method(self, "clone"), ...rest], kwargs);
  }
  if (op === "__getitem__") return ([self, index]) => method(self, "index", ...indices(index));
  if (op in reflected) return reflectedForm(reflected[op]!);
  if (properties.has(op))
    return ([self]) => {
      const value = (self as Arguments)[op];
      if (value === undefined) throw new Missing(`Tensor.${op} does not exist`);
      return value;
    };
  if (methodsOnly.has(op)) return (args, kwargs) => callMethod(camelCase(op), args, kwargs);
  return (args, kwargs) => call(apiPath(op), args, kwargs);
}

/** In Python `self` of a reflected operator is a tensor, or the call does not get this far. */
function reflectedForm(path: string): Call {
  return ([self, other], kwargs) => {
    if (!isTensor(self)) throw new (lookUp("ValueError") as ErrorConstructor)("self: no tensor");
    return call(path, [other, self], kwargs);
  };
}

/** A list with a slice, a tensor or a list in it subscripts dimension by dimension. */
function indices(index: unknown): unknown[] {
  if (!Array.isArray(index)) return [index];
  return index.some((item) => typeof item !== "number") ? index : [index];
}

/** The method form, or undefined where the function form is it already. */
export function methodForm(op: string, variant: string): Call | undefined {
  const full = variant ? `${op}.${variant}` : op;
  const isMethod = methodsOnly.has(op) || inPlaceOnly.has(full) || op.startsWith("__");
  if (isMethod || op === "slice") return undefined;
  return (args, kwargs) => callMethod(camelCase(op), args, kwargs);
}

/** The in-place form, or undefined where the function form is it already. */
export function inPlaceForm(op: string, variant: string): Call | undefined {
  if (inPlaceOnly.has(variant ? `${op}.${variant}` : op)) return undefined;
  if (op.startsWith("nn.functional."))
    return (args, kwargs) => call(apiPath(op), args, { ...kwargs, inplace: true });
  return (args, kwargs) => callMethod(camelCase(`${op}_`), args, kwargs);
}

/** Operators whose in-place form may give its tensor another shape. */
export const reshapesInPlace = new Set([
  "as_strided",
  "squeeze",
  "swapaxes",
  "swapdims",
  "t",
  "transpose",
  "unsqueeze",
]);

/** Whether an operator draws random numbers: PyTorch seeds the generator before each such call. */
export function isRandom(op: string): boolean {
  const last = op.split(".").at(-1)!;
  const drawing =
    /^(rand|normal|log_normal|bernoulli|multinomial|cauchy|exponential|geometric|uniform|rrelu)/;
  return drawing.test(last) || /dropout\dd?$|dropout$|lowrank|fractional|attention/.test(last);
}
