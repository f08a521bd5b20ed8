// Losses and PyTorch's forms of elementwise operators, with the numbers of known hard cases.
import { describe, expect, it } from "vitest";
import * as torch from "cresset";

const F = torch.nn.functional;
const { tensor } = torch;
type Options = { dtype?: torch.DType; requiresGrad?: boolean };

const make = (data: torch.TensorData, options: Options = {}) =>
  tensor(data, { dtype: torch.float64, ...options });
const leaf = (data: torch.TensorData) => make(data, { requiresGrad: true });
const ints = (data: torch.TensorData, dtype = torch.int64) => tensor(data, { dtype });

function close(actual: torch.Tensor, expected: unknown, tolerance = 1e-6): void {
  const flat = (x: unknown): number[] => (Array.isArray(x) ? x.flatMap(flat) : [Number(x)]);
  const got = flat(actual.tolist());
  const want = flat(expected);
  expect(got.length).toBe(want.length);
  got.forEach((value, i) => {
    if (Number.isFinite(want[i]!)) expect(Math.abs(value - want[i]!)).toBeLessThan(tolerance);
    else expect(value).toBe(want[i]);
  });
}

describe("cross entropy", () => {
  const logits = [
    [0, 1, -1],
    [2, 0, 0.5],
    [1, 1, 3],
  ];
  const target = ints([1, -100, 2]);
  const weight = make([0.5, 2, 1]);
  const smooth = { weight, labelSmoothing: 0.3 };

  it("leaves ignored rows out, with weights and label smoothing", () => {
    const x = leaf(logits);
    const mean = F.crossEntropy(x, target, smooth);
    close(mean, 0.5716108);
    close(F.crossEntropy(x, target, { ...smooth, reduction: "sum" }), 1.7148324);
    close(F.crossEntropy(x, target, { ...smooth, reduction: "none" }), [0.9633104, 0, 0.751522]);
    close(F.crossEntropy(x, target, { labelSmoothing: 0.3 }), 0.6735754);
    mean.backward();
    close(x.grad!.select(0, 1), [0, 0, 0], 1e-300);
    close(x.grad!.select(0, 0), [0.1260916, -0.1452761, 0.0191845]);
  });

  it("agrees with log probabilities over spatial dims", () => {
    const data = Array.from({ length: 2 * 5 * 19 }, (_, i) => Math.sin(i * 1.7) * 4);
    const classes = ints(Array.from({ length: 38 }, (_, i) => (i * 7) % 5)).reshape(2, 19);
    const x = make(data).reshape(2, 5, 19);
    const rows = x.permute(0, 2, 1).reshape(38, 5);
    const want = F.crossEntropy(rows, classes.reshape(38), { reduction: "none" });
    close(F.crossEntropy(x, classes, { reduction: "none" }).reshape(38), want.tolist(), 1e-12);
  });

  it("has a second derivative", () => {
    const x = leaf([[0.3, -0.2, 0.9]]);
    const loss = F.crossEntropy(x, ints([2]));
    const [g] = torch.autograd.grad(loss, [x], { createGraph: true });
    const [h] = torch.autograd.grad(g!.mul(make([[1, 0, 0]])).sum(), [x]);
    const p = [0.3, -0.2, 0.9].map((v) => Math.exp(v));
    const z = p[0]! + p[1]! + p[2]!;
    const q = p.map((v) => v / z);
    close(h!, [[q[0]! * (1 - q[0]!), -q[0]! * q[1]!, -q[0]! * q[2]!]], 1e-12);
  });

  it("refuses classes that do not exist", () => {
    expect(() => F.crossEntropy(make(logits), ints([0, 1, 3]))).toThrow(torch.IndexError);
    expect(() => F.crossEntropy(make(logits), ints([0, 1]))).toThrow(/shape \[3\]/);
    expect(() => F.mseLoss(make([1]), make([2]), { reduction: "abc" as "sum" })).toThrow(
      torch.ValueError,
    );
  });
});

describe("losses of a difference", () => {
  it("gives float gradients to both sides", () => {
    const x = tensor([1, 2, 4], { requiresGrad: true });
    const t = tensor([0, 4, 4], { requiresGrad: true });
    F.mseLoss(x, t).backward();
    close(x.grad!, [2 / 3, -4 / 3, 0]);
    close(t.grad!, [-2 / 3, 4 / 3, 0]);
  });
  it("averages over nothing to NaN", () => {
    expect(F.mseLoss(make([]), make([])).item()).toBeNaN();
  });
});

describe("integer division", () => {
  it.each([
    [torch.int64, -(2n ** 63n)],
    [torch.int32, -(2n ** 31n)],
  ])("survives the smallest %s by -1", (dtype, least) => {
    const a = tensor([least], { dtype });
    const b = ints([-1], dtype);
    expect(BigInt(a.div(b, { roundingMode: "floor" }).item() as number)).toBe(least);
    expect(BigInt(a.div(b, { roundingMode: "trunc" }).item() as number)).toBe(least);
    expect(a.remainder(b).item()).toBe(0);
    expect(a.fmod(b).item()).toBe(0);
  });
  it("follows PyTorch's signs", () => {
    const a = ints([9, -9, 9, -9]);
    const b = ints([4, 4, -4, -4]);
    expect(a.remainder(b).tolist()).toEqual([1, 3, -3, -1]);
    expect(a.fmod(b).tolist()).toEqual([1, -1, 1, -1]);
    expect(a.div(b, { roundingMode: "floor" }).tolist()).toEqual([2, -3, -3, 2]);
    expect(a.div(b, { roundingMode: "trunc" }).tolist()).toEqual([2, -2, -2, 2]);
    expect(make([1]).floorDivide(0.1).tolist()).toEqual([9]);
    expect(make([1]).div(0).tolist()).toEqual([Infinity]);
  });
  it("refuses zero", () => {
    for (const f of ["floorDivide", "remainder", "fmod"] as const)
      expect(() => ints([4, 5])[f](0)).toThrow(torch.CressetError);
  });
});

describe("powers", () => {
  it("takes negative integer exponents from tensors only", () => {
    const y = ints([3, -3, 1, -1, 3]).pow(ints([-2, -1, -5, -5, 4]));
    expect(y.tolist()).toEqual([0, 0, 1, -1, 81]);
    const exponents = Array.from({ length: 19 }, (_, i) => (i === 5 ? -1 : 2));
    const base = ints(new Array<number>(19).fill(3), torch.int32);
    const powers = base.pow(ints(exponents, torch.int32)).tolist();
    expect(powers).toEqual(exponents.map((e) => (e === 2 ? 9 : 0)));
    expect(() => ints([3, 4]).pow(-2)).toThrow(torch.CressetError);
  });
});

describe("promotion", () => {
  const u8 = ints([1, 1], torch.uint8);
  it("counts 0-d tensors and numbers by their kind", () => {
    const zeroDim = (v: number, dtype: torch.DType) => tensor(v, { dtype });
    expect(u8.add(zeroDim(300, torch.int64)).tolist()).toEqual([45, 45]);
    expect(u8.add(zeroDim(300, torch.int64)).dtype).toBe(torch.uint8);
    expect(ints([1, 1], torch.int16).mul(1.5).dtype).toBe(torch.float32);
    expect(zeroDim(1, torch.float32).mul(zeroDim(1, torch.float64)).dtype).toBe(torch.float64);
    expect(tensor([1, 2], { dtype: torch.float16 }).mul(zeroDim(1, torch.float64)).dtype).toBe(
      torch.float16,
    );
    expect(ints([1]).div(ints([2])).dtype).toBe(torch.float32);
    expect(ints([250, 255, 7], torch.uint8).add(10).tolist()).toEqual([4, 9, 17]);
    expect(ints([250, 255, 7], torch.uint8).mul(3).tolist()).toEqual([238, 253, 21]);
    expect(ints([250, 255, 7], torch.uint8).neg().tolist()).toEqual([6, 1, 249]);
  });
  it("refuses results that do not fit in place", () => {
    const a = ints([1, 2]);
    expect(() => a.add_(0.5)).toThrow(torch.CressetError);
    expect(a.tolist()).toEqual([1, 2]);
    const b = tensor([true, false]);
    expect(() => b.add_(1)).toThrow(torch.CressetError);
    expect(() => b.sub(b)).toThrow(torch.CressetError);
    expect(() => ints([1]).add(ints([1]), { alpha: 0.5 })).toThrow(/alpha/);
    expect(() => torch.maximum(a, 1 as never)).toThrow(torch.CressetError);
  });
});

describe("gradients at special points", () => {
  const gradient = (x: torch.Tensor, y: torch.Tensor) => {
    y.sum().backward();
    return x.grad!;
  };
  it("shares at ties", () => {
    const a = leaf([1, 2]);
    const b = leaf([1, 3]);
    torch.maximum(a, b).sum().backward();
    close(a.grad!, [0.5, 0]);
    close(b.grad!, [0.5, 1]);
    const x = leaf([0, -2]);
    close(gradient(x, x.abs()), [0, -1]);
  });
  it("keeps distances of equal rows at 0", () => {
    const x = leaf([
      [7, 1],
      [7, 1],
      [10, 5],
    ]);
    close(gradient(x, torch.cdist(x, x)), [
      [-1.2, -1.6],
      [-1.2, -1.6],
      [2.4, 3.2],
    ]);
  });
});

describe("interpolate", () => {
  const x = make([0, 10, 20, 30, 40]).reshape(1, 1, 5);
  const values = (options: Parameters<typeof F.interpolate>[1]) =>
    F.interpolate(x, options as object).reshape(-1);
  it("resizes by factor and by size", () => {
    close(
      values({ scaleFactor: 1.3, mode: "linear" } as never),
      [0, 6.5384615, 14.2307692, 21.9230769, 29.6153846, 37.3076923],
    );
    close(values({ size: 6, mode: "linear" } as never), [0, 7.5, 15.8333333, 24.1666667, 32.5, 40]);
    const aligned = { scaleFactor: 1.3, mode: "linear", alignCorners: true };
    close(values(aligned as never), [0, 8, 16, 24, 32, 40]);
    close(values({ size: 3, mode: "nearest" } as never), [0, 10, 30]);
    close(values({ size: 3, mode: "nearest-exact" } as never), [0, 20, 40]);
    close(values({ size: 1, mode: "linear", alignCorners: true } as never), [0]);
  });
});
