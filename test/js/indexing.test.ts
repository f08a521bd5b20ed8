// Indexing, gather and scatter, masks, sorting, searching and embeddings.
import { describe, expect, test } from "vitest";
import * as torch from "../../js/src/index.js";

const { nn, tensor } = torch;
const ints = (data: torch.TensorData) => tensor(data, { dtype: torch.int64 });
const leaf = (data: torch.TensorData) => tensor(data, { dtype: torch.float64, requiresGrad: true });
const values = (t: torch.Tensor) => t.tolist();
const grid = () => ints(Array.from({ length: 24 }, (_, i) => i)).reshape(2, 3, 4);

describe("x.index", () => {
  test("an integer is applied before lists", () => {
    expect(values(grid().index(0, ":", [1, 2]))).toEqual([
      [1, 2],
      [5, 6],
      [9, 10],
    ]);
  });
  test("separated lists come first, neighbours stay in place", () => {
    expect(grid().index([0, 1], ":", [1, 2]).shape).toEqual([2, 3]);
    expect(grid().index(":", [0, 2, 1], [1, 2, 0]).shape).toEqual([2, 3]);
    expect(grid().index(":", ":", [[0, 1]]).shape).toEqual([2, 3, 1, 2]);
  });
  test("slices, null and the ellipsis", () => {
    expect(values(grid().index(1, "0:3:2", "...", -1))).toEqual([15, 23]);
    expect(grid().index(null, "...", null).shape).toEqual([1, 2, 3, 4, 1]);
    expect(values(grid().index("...", torch.slice(1, 2)).index(0))).toEqual([[1], [5], [9]]);
  });
  test("masks and boolean scalars", () => {
    const x = grid();
    expect(values(x.index(x.gt(20)))).toEqual([21, 22, 23]);
    expect(values(x.index(0, [true, false, true], 0))).toEqual([0, 8]);
    expect(x.index(true).shape).toEqual([1, 2, 3, 4]);
    expect(x.index(false).shape).toEqual([0, 2, 3, 4]);
    expect(x.index([]).shape).toEqual([0, 3, 4]);
  });
  test.each([
    [[5], "IndexError"],
    [[[5]], "IndexError"],
    [[[-3]], "IndexError"],
    [[[0.5]], "IndexError"],
    [[0, 0, 0, 0], "IndexError"],
    [["::-1"], "ValueError"],
    [["1;2"], "IndexError"],
    [["...", "..."], "IndexError"],
    [
      [
        [0, 1],
        [0, 1, 2],
      ],
      "ShapeError",
    ],
    [[tensor([0.5])], "IndexError"],
    [[tensor([true, false, true])], "IndexError"],
  ])("refuses %j", (index, name) => {
    expect(() => grid().index(...(index as torch.Index[]))).toThrowError(
      expect.objectContaining({ name }),
    );
  });
  test("indexPut_ writes numbers and tensors, repeated indices add up", () => {
    const x = torch.zeros(3, 2);
    x.indexPut_([[0, 0, 2]], 1, true);
    x.indexPut_([1, ":"], tensor([5, 6]));
    x.indexPut_([x.eq(0)], -1);
    expect(values(x)).toEqual([
      [2, 2],
      [5, 6],
      [1, 1],
    ]);
    expect(() => x.indexPut_([[7]], 1)).toThrowError(/\[-3, 2\]/);
  });
  test("gradients add up over repeated indices, also the second time", () => {
    const x = leaf([1, 2, 3]);
    const [g] = torch.autograd.grad(x.index([0, 2, 2]).pow(3).sum(), [x], { createGraph: true });
    expect(values(g!)).toEqual([3, 0, 54]);
    const [h] = torch.autograd.grad(g!.sum(), [x]);
    expect(values(h!)).toEqual([6, 0, 36]);
  });
});

describe("bad indices never reach memory", () => {
  const x = () => torch.zeros(3, 2);
  const one = () => torch.zeros(1, 2);
  test.each([
    ["indexSelect", (i: torch.Tensor) => x().indexSelect(0, i)],
    ["gather", (i: torch.Tensor) => x().gather(0, i.reshape(1, 1))],
    ["scatter", (i: torch.Tensor) => x().scatter(0, i.reshape(1, 1), 1)],
    ["scatterAdd", (i: torch.Tensor) => x().scatterAdd(0, i.reshape(1, 1), one())],
    ["indexAdd", (i: torch.Tensor) => x().indexAdd(0, i, one())],
    ["indexCopy", (i: torch.Tensor) => x().indexCopy(0, i, one())],
    ["indexFill", (i: torch.Tensor) => x().indexFill(0, i, 1)],
    ["take", (i: torch.Tensor) => x().take(i.mul(5))],
    ["put", (i: torch.Tensor) => x().put(i.mul(5), torch.zeros(1))],
    ["embedding", (i: torch.Tensor) => nn.functional.embedding(i, x())],
    ["oneHot", (i: torch.Tensor) => nn.functional.oneHot(i, 3)],
  ])("%s", (_, use) => {
    for (const bad of [9, -9])
      expect(() => use(ints([bad]))).toThrowError(expect.objectContaining({ name: "IndexError" }));
    expect(() => use(tensor([0.5]))).toThrowError(
      expect.objectContaining({ name: expect.stringMatching(/DTypeError|IndexError/) }),
    );
  });
});

describe("where, clamp", () => {
  test("A05: the branch not taken", () => {
    const m = (x: torch.Tensor) => x.gt(0.1);
    const grad = (f: (x: torch.Tensor) => torch.Tensor) => {
      const x = leaf([-1, 0, 0.25, 9]);
      f(x).sum().backward();
      return values(x.grad!);
    };
    expect(grad((x) => torch.where(m(x), x.sqrt(), x.mul(3)))).toEqual([NaN, NaN, 1, 1 / 6]);
    const cured = [3, 3, 1, 1 / 6];
    const safe = (x: torch.Tensor) => torch.where(m(x), torch.where(m(x), x, 1).sqrt(), x.mul(3));
    expect(grad(safe)).toEqual(cured);
    expect(grad((x) => x.mul(3).indexPut_([m(x)], x.index(m(x)).sqrt()))).toEqual(cured);
  });
  test("A08: NaN in values and bounds", () => {
    for (const pad of [0, 500, 999]) {
      const x = torch.zeros(1003);
      const part = x.narrow(0, pad, 4);
      part.copy_(tensor([NaN, -2, 0.5, 3]));
      const of = (t: torch.Tensor) => values(t.narrow(0, pad, 4));
      expect(of(x.clamp(0, 1))).toEqual([NaN, 0, 0.5, 1]);
      expect(of(x.clamp(0, NaN))).toEqual([NaN, NaN, NaN, NaN]);
      expect(of(x.clamp(null, NaN))).toEqual([NaN, NaN, NaN, NaN]);
      expect(of(x.clamp(2, -1))).toEqual([NaN, -1, -1, -1]);
    }
    const x = tensor([NaN, -2, 0.5, 3]);
    const y = x.clamp(tensor([0, NaN, 0, 0]), tensor([1, 1, NaN, 1]));
    expect(values(y)).toEqual([NaN, NaN, NaN, 1]);
  });
  test("A22: gradients at ties", () => {
    const x = leaf([0, 1, 1.5]);
    x.clamp(0, 1).sum().backward();
    expect(values(x.grad!)).toEqual([1, 1, 0]);
    const y = leaf([0, 1, -1]);
    y.clampMin(0).sum().backward();
    expect(values(y.grad!)).toEqual([1, 1, 0]);
    const z = leaf([4, 1, 4, 4]);
    z.median().backward();
    expect(values(z.grad!)).toEqual([1 / 3, 0, 1 / 3, 1 / 3]);
  });
});

describe("A20: embedding", () => {
  const list = () => ints(Array.from({ length: 1200 }, (_, i) => i % 3));
  const table = () => torch.ones(6, 2, { dtype: torch.float64, requiresGrad: true });
  test("the padding row has no gradient, however long the list", () => {
    const w = table();
    nn.functional.embedding(list(), w, { paddingIdx: 1 }).sum().backward();
    expect(values(w.grad!.select(1, 0))).toEqual([400, 0, 400, 0, 0, 0]);
    const v = table();
    const options = { paddingIdx: 1, scaleGradByFreq: true };
    nn.functional.embedding(list(), v, options).sum().backward();
    v.grad!.select(1, 0)
      .data()
      .forEach((g, i) => expect(g).toBeCloseTo(i === 0 || i === 2 ? 1 : 0));
  });
  test("max_norm changes the weight, which a saved product notices", () => {
    const w = torch.full([6, 2], 3, { dtype: torch.float64, requiresGrad: true });
    const product = w.mul(w);
    const e = nn.functional.embedding(ints([0, 2]), w, { maxNorm: 1 });
    expect(Number(e.detach().pow(2).sum().item())).toBeCloseTo(2, 5);
    expect(() => product.sum().add(e.sum()).backward()).toThrowError(
      expect.objectContaining({ name: "AutogradError" }),
    );
  });
  test("no indices", () => {
    const w = table();
    const y = nn.functional.embedding(ints([]), w);
    expect(y.shape).toEqual([0, 2]);
    y.sum().backward();
    expect(values(w.grad!.sum())).toBe(0);
  });
});

describe("sorting and searching", () => {
  test("NaN is largest, equal elements keep their order", () => {
    const x = tensor([2, NaN, -0, 0, 1, NaN]);
    expect(values(x.sort({ stable: true }).indices)).toEqual([2, 3, 4, 0, 1, 5]);
    expect(values(x.sort({ descending: true, stable: true }).indices)).toEqual([1, 5, 0, 4, 2, 3]);
    expect([...(x.topk(2).indices.tolist() as number[])].sort()).toEqual([1, 5]);
    expect(values(x.median())).toBeNaN();
    expect(values(torch.nanmedian(x))).toBe(0);
  });
  test("long rows agree with short ones", () => {
    const n = 20000;
    const data = Array.from({ length: n }, (_, i) => ((i * 7919) % 1009) - 500);
    const want = data.map((v, i) => [v, i] as const).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    for (const dtype of [torch.float32, torch.float64, torch.int64, torch.int16]) {
      const { values: v, indices } = tensor(data, { dtype }).sort({ stable: true });
      expect(values(v)).toEqual(want.map(([x]) => x));
      expect(values(indices)).toEqual(want.map(([, i]) => i));
    }
  });
  test("the whole range of int64 and floats", () => {
    const x = tensor([2n ** 63n - 1n, 0n, -(2n ** 63n), -1n], { dtype: torch.int64 });
    expect(values(x.argsort())).toEqual([2, 3, 1, 0]);
    expect(values(tensor([Infinity, -Infinity, 0]).argsort())).toEqual([1, 2, 0]);
  });
  test("unique, isin, searchsorted", () => {
    const x = tensor([3, 1, 3, NaN, NaN]);
    const [u, inverse, counts] = torch.unique(x, { returnInverse: true, returnCounts: true });
    expect(values(u!)).toEqual([1, 3, NaN, NaN]);
    expect(values(inverse!)).toEqual([1, 0, 1, 2, 3]);
    expect(values(counts!)).toEqual([1, 2, 1, 1]);
    expect(values(torch.isin(x, tensor([3, NaN])))).toEqual([true, false, true, false, false]);
    expect(values(torch.searchsorted(ints([1, 3, 5]), ints([3, 6, 0])))).toEqual([1, 3, 0]);
  });
  test("empty tensors", () => {
    const e = torch.zeros(0, 3, { requiresGrad: true });
    for (const y of [
      e.sort(0).values,
      e.gather(0, ints([]).reshape(0, 3)),
      e.indexSelect(0, ints([])),
      e.maskedSelect(e.gt(0)),
      e.clamp(0, 1),
      torch.where(e.gt(0), e, 0),
      e.index([]),
    ]) {
      expect(y.numel()).toBe(0);
      y.sum().backward();
    }
    expect(e.grad!.shape).toEqual([0, 3]);
    expect(() => e.median(0)).toThrowError(expect.objectContaining({ name: "IndexError" }));
    expect(torch.nonzero(e).shape).toEqual([0, 2]);
    expect(torch.unique(e).shape).toEqual([0]);
  });
});
