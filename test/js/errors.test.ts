// Mistakes of users: every operator answers with a typed error that names it, and goes on working.
import { afterEach, describe, expect, it } from "vitest";
import * as torch from "cresset";
import { operators } from "../fuzz/operators.js";

const { CressetError, tensor } = torch;

// After any mistake the next operation must be right.
afterEach(() => {
  const a = tensor([1, 2, 3]);
  expect(a.add(a).tolist()).toEqual([2, 4, 6]);
});

function caught(fn: () => unknown): Error {
  try {
    fn();
  } catch (error) {
    return error as Error;
  }
  throw new Error("no error was thrown");
}

describe("every operator refuses what is no tensor", () => {
  const list = operators().filter((op) => op.args[0]?.type === "Tensor" && !op.path.includes("."));
  it.each(list.map((op) => [op.path, op] as const))("%s", (path, op) => {
    const disposed = tensor([1, 2]);
    disposed.dispose();
    const filler = op.args.slice(1).map(() => 1);
    for (const bad of ["text", 3, null, undefined, {}, [1, 2], disposed]) {
      const error = caught(() => op.call([bad, ...filler]));
      expect(error, String(error)).toBeInstanceOf(CressetError);
      expect(error.message).toContain(path.replace(/_$/, ""));
    }
    const error = caught(() => op.call([tensor([1, 2]), { noSuchArgument: 1 }]));
    expect(error, String(error)).toBeInstanceOf(CressetError);
    expect(error.message).toContain(path.replace(/_$/, ""));
  });
});

const camelCase = (name: string): string =>
  name.replace(/([a-z])_([a-z])/g, (_, x: string, y: string) => x + y.toUpperCase());
const a = () => torch.ones(2, 3);
const ints = () => torch.ones(2, 3).to(torch.int64);

const mistakes: [string, new (m: string) => Error, string, () => unknown][] = [
  ["shapes that do not broadcast", torch.ShapeError, "add", () => a().add(torch.ones(4))],
  ["inner sizes that differ", torch.ShapeError, "mm", () => torch.mm(a(), a())],
  ["a vector for a matrix", torch.ShapeError, "mm", () => torch.mm(a(), torch.ones(3))],
  ["different dtypes in a product", torch.DTypeError, "mm", () => torch.mm(a(), ints().mT)],
  ["a dim out of range", torch.IndexError, "sum", () => a().sum(2)],
  ["a dim far out of range", torch.IndexError, "softmax", () => a().softmax(2 ** 40)],
  ["a fractional dim", torch.TypeError_, "softmax", () => a().softmax(0.5)],
  ["a NaN size", torch.TypeError_, "zeros", () => torch.zeros(NaN)],
  ["a negative size", torch.ValueError, "zeros", () => torch.zeros(-1)],
  ["a size beyond 2^53", torch.TypeError_, "zeros", () => torch.zeros(2 ** 60)],
  ["too many elements", torch.ValueError, "zeros", () => torch.zeros(2 ** 40, 2 ** 40)],
  ["more memory than there is", torch.OutOfMemoryError, "cpu", () => torch.zeros(2 ** 45)],
  ["an index out of range", torch.IndexError, "select", () => a().select(0, 2)],
  ["an index out of range by index()", torch.IndexError, "select", () => a().index(5)],
  ["too many indices", torch.CressetError, "", () => a().index(0, 0, 0)],
  ["bits of a float", torch.DTypeError, "bitwise_and", () => torch.bitwiseAnd(a(), a())],
  ["minus of bool", torch.DTypeError, "neg", () => torch.neg(torch.ones(2).to(torch.bool))],
  ["bool minus bool", torch.DTypeError, "sub", () => a().to(torch.bool).sub(a().to(torch.bool))],
  ["division of ints by zero", torch.ValueError, "remainder", () => ints().remainder(0)],
  ["a negative power of ints", torch.ValueError, "pow", () => ints().pow(-1)],
  ["a float into ints", torch.DTypeError, "add_", () => ints().add_(0.5)],
  ["an in-place result that grows", torch.ShapeError, "mul_", () => torch.ones(3).mul_(a())],
  [
    "a write to an expanded tensor",
    torch.ValueError,
    "mul_",
    () => torch.ones(1).expand(3).mul_(2),
  ],
  ["a write to a leaf", torch.AutogradError, "add_", () => a().requiresGrad_().add_(1)],
  ["gradients of ints", torch.AutogradError, "requires", () => ints().requiresGrad_()],
  ["backward without a graph", torch.AutogradError, "backward", () => a().sum().backward()],
  [
    "backward of a matrix",
    torch.AutogradError,
    "backward",
    () => a().requiresGrad_().mul(2).backward(),
  ],
  ["a shape that does not fit", torch.ShapeError, "view", () => a().view(4)],
  ["two sizes of -1", torch.ValueError, "reshape", () => a().reshape(-1, -1)],
  ["a view that needs a copy", torch.ShapeError, "view", () => a().mT.view(6)],
  ["expand to fewer dims", torch.ShapeError, "expand", () => a().expand(3)],
  ["a storage that is too short", torch.ValueError, "as_strided", () => a().asStrided([9], [9])],
  ["ragged data", torch.ShapeError, "tensor", () => tensor([[1, 2], [3]])],
  ["a hole in data", torch.CressetError, "tensor", () => tensor([1, undefined as never])],
  ["text as data", torch.TypeError_, "tensor", () => tensor(["a"] as never)],
  ["an int64 too large", torch.ValueError, "tensor", () => tensor([2n ** 64n])],
  ["an unknown device", torch.DeviceError, "device", () => a().to("tpu")],
  [
    "values of a meta tensor",
    torch.CressetError,
    "",
    () => torch.ones(2, { device: "meta" }).tolist(),
  ],
  ["item of many", torch.ValueError, "item", () => a().item()],
  ["an async function in noGrad", torch.AutogradError, "noGrad", () => torch.noGrad(async () => 1)],
  ["permute with a repeated dim", torch.ValueError, "permute", () => a().permute(0, 0)],
  ["a step of 0", torch.ValueError, "slice", () => a().index("::0")],
  [
    "too many arguments",
    torch.TypeError_,
    "mm",
    () => (torch.mm as (...x: unknown[]) => unknown)(a(), a(), 1, 2),
  ],
];

describe("mistakes", () => {
  it.each(mistakes)("%s", (_name, kind, op, fn) => {
    const error = caught(fn);
    expect(error, String(error)).toBeInstanceOf(kind);
    expect(error.message).toContain(camelCase(op));
  });

  it("survives an allocation of 2 GiB that fails", () => {
    torch.memory.setLimit(2 ** 30);
    try {
      const error = caught(() => torch.empty(2 ** 29));
      expect(error).toBeInstanceOf(torch.OutOfMemoryError);
      expect(error.message).toMatch(/2147483648 bytes/);
    } finally {
      torch.memory.setLimit(0);
    }
  });

  it("carries the JavaScript stack of the call", () => {
    function userCode(): unknown {
      return torch.mm(a(), a());
    }
    expect(caught(userCode).stack).toContain("userCode");
  });
});

it("the smallest integer divided by -1 does not end the process", () => {
  const x = torch.full([1, 2, 2], -(2n ** 63n), { dtype: torch.int64 });
  const negated = torch.nn.functional.avgPool2d(x, [1, 1], { divisorOverride: -1 });
  expect(negated.shape).toEqual([1, 2, 2]);
  expect(torch.nn.functional.avgPool2d(x, [1, 1], { divisorOverride: 1 }).equal(x)).toBe(true);
});

describe("values and sizes that lead out of bounds", () => {
  const { linalg, nn } = torch;

  it("NaN on the diagonal of a symmetric matrix is reported", () => {
    for (const at of [0, 1, 2]) {
      const x = torch.eye(3, { dtype: torch.float64 });
      x.index(at, at).fill_(NaN);
      const [ld, , info] = linalg.ldlFactorEx(x);
      expect(ld.shape).toEqual([3, 3]);
      expect(info.item()).toBe(at + 1);
    }
  });

  it("a histogram's range may be wider than the largest number", () => {
    const counts = torch.histc(tensor([-3e38, 0, 3e38]), { bins: 2, min: -3e38, max: 3e38 });
    expect(counts.tolist()).toEqual([1, 2]);
  });

  it("samples of fractional pooling outside [0, 1) count as 0", () => {
    const x = torch.arange(36).to(torch.float32).reshape([1, 1, 6, 6]);
    const pool = (sample: number) => {
      const options = {
        outputSize: 3,
        _randomSamples: torch.full([1, 1, 2], sample, { dtype: torch.float32 }),
      };
      return nn.functional.fractionalMaxPool2d(x, 2, options).tolist();
    };
    for (const sample of [NaN, -1e30, 1e30]) expect(pool(sample)).toEqual(pool(0));
  });

  it("a tensor may be its own index", () => {
    const written = [1e15, ...Array<number>(63).fill(1)];
    const ones = () => torch.ones([64], { dtype: torch.int64 });
    const values = torch.full([64], 1e15, { dtype: torch.int64 });
    const sorted = (t: torch.Tensor) => torch.sort(t, { descending: true })[0].tolist();
    for (const write of [
      (x: torch.Tensor) => x.indexPut_([x], values),
      (x: torch.Tensor) => x.scatter_(0, x, values),
      (x: torch.Tensor) => x.indexCopy_(0, x, values),
      (x: torch.Tensor) => x.put_(x, values),
    ]) {
      expect(sorted(write(ones()))).toEqual(written);
    }
  });

  it("a backward pass refuses indices that were written over", () => {
    const x = torch.rand([1, 1, 4, 4]).requiresGrad_(true);
    const [pooled, places] = nn.functional.maxPool2d(x, 2, {
      returnIndices: true,
    }) as unknown as [torch.Tensor, torch.Tensor];
    const at = places.clone();
    const calls: [torch.Tensor, torch.Tensor][] = [
      [pooled, places],
      [nn.functional.maxUnpool2d(pooled, at, 2), at],
      torch.max(x, 3) as unknown as [torch.Tensor, torch.Tensor],
      torch.cummax(x, 3) as unknown as [torch.Tensor, torch.Tensor],
      linalg.luFactor(x) as unknown as [torch.Tensor, torch.Tensor],
    ];
    for (const [result, indices] of calls) {
      indices.fill_(1000);
      expect(caught(() => result.sum().backward({ retainGraph: true })).message).toContain(
        "modified by an in-place",
      );
    }
  });

  it("sizes of meta tensors cost nothing", () => {
    const x = torch.rand([1, 1, 2, 2], { device: "meta" });
    expect(torch._upsampleBilinear2dAa(x, [2 ** 31 - 1, 3]).shape).toEqual([1, 1, 2 ** 31 - 1, 3]);
    expect(torch.fft.fftfreq(2 ** 40, { device: "meta" }).shape).toEqual([2 ** 40]);
  });

  it("counts that would never end are refused", () => {
    expect(caught(() => torch.combinations(tensor([1, 2]), 2 ** 31)).message).toMatch(/65536/);
    expect(caught(() => torch.diff(tensor([1, 2]), 2 ** 31)).message).toMatch(/1048576/);
  });
});

describe("layers given nonsense", () => {
  const { nn } = torch;
  type Any = new (...args: unknown[]) => unknown;
  const cases: [string, unknown[], RegExp][] = [
    ["ZeroPad2d", [null], /^ZeroPad2d: expected an integer for "padding", got null/],
    ["ConstantPad1d", [1], /^ConstantPad1d: missing argument "value"/],
    ["Conv2d", [1n, 2, {}], /^Conv2d: missing argument "kernelSize"/],
    ["Conv2d", [1, 2, [3, "x"]], /^Conv2d: expected an integer for "kernelSize", got "x"/],
    ["Embedding", ["x", 2], /^Embedding: expected an integer for "numEmbeddings"/],
    ["LayerNorm", [null], /^LayerNorm: expected an integer for "normalizedShape"/],
    ["BatchNorm1d", [1.5], /^BatchNorm1d: expected an integer for "numFeatures"/],
    ["GRUCell", [2, 2.5], /^GRUCell: expected an integer for "hiddenSize"/],
    ["LSTM", [2, 2, 2 ** 31], /^LSTM: expected numLayers in \[1, 10000\]/],
    ["MultiheadAttention", [4, null], /^MultiheadAttention: expected an integer for "numHeads"/],
    ["TransformerEncoder", ["x", 1], /^TransformerEncoder: expected a TransformerEncoderLayer/],
    ["Transformer", [4, 2, 2 ** 31], /^TransformerEncoder: expected numLayers in \[0, 10000\]/],
    ["ModuleList", [3], /^ModuleList: expected a list for "modules", got 3/],
    ["ModuleDict", [[1]], /^ModuleDict: expected pairs of a name and a value, got 1/],
    ["ParameterList", [[3]], /^ParameterList: expected a Tensor for "parameters", got 3/],
    ["Sequential", [null], /^Sequential: expected a Module, got null/],
    ["Unflatten", [1, "x"], /^Unflatten: expected an integer for "unflattenedSize"/],
    ["Parameter", ["x"], /^Parameter: expected a Tensor for "data"/],
  ];
  it.each(cases)("%s %#", (name, args, message) => {
    const Class = (nn as unknown as Record<string, Any>)[name]!;
    const error = caught(() => new Class(...args));
    expect(error, String(error)).toBeInstanceOf(CressetError);
    expect(error.message).toMatch(message);
  });

  it("a table of too many weights is refused before it is begun", () => {
    const up = new nn.Upsample(2 ** 31 - 1);
    expect(caught(() => up(torch.ones([1, 1, 1]))).message).toMatch(
      /^interpolate: output size 2147483647/,
    );
  });
});

it("datasets and loaders refuse nonsense", () => {
  const { BatchSampler, DataLoader, Subset, SequentialSampler, TensorDataset } = torch.utils.data;
  const source = new TensorDataset(torch.arange(4));
  const order = new SequentialSampler(source);
  const batches = new DataLoader(source, { batchSampler: [1] as never });
  const cases: [() => unknown, RegExp][] = [
    [() => new BatchSampler(order, 0), /^BatchSampler: expected a positive batchSize, got 0/],
    [() => new Subset(source, 3 as never), /^Subset: expected a list of indices, got 3/],
    [() => new DataLoader([1] as never), /^DataLoader: expected a Dataset, got an array/],
    [() => new TensorDataset(3 as never), /^TensorDataset: expected Tensors, got 3/],
    [() => [...batches], /^DataLoader: expected lists of indices, got 1/],
    [() => torch.nn.utils.clipGradNorm_(3 as never, 1), /^clipGradNorm_: expected a list/],
    [() => torch.nn.init.xavierUniform_(3 as never), /^xavierUniform_: expected a Tensor/],
  ];
  for (const [fn, message] of cases) {
    const error = caught(fn);
    expect(error, String(error)).toBeInstanceOf(CressetError);
    expect(error.message).toMatch(message);
  }
});
