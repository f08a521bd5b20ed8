// Reductions, scans and norms: PyTorch's overloads, edges, and cases that broke similar systems.
import { describe, expect, test } from "vitest";
import * as torch from "../../js/src/index.js";

const { tensor, Tensor } = torch;
type T = InstanceType<typeof Tensor>;

const range = (n: number, scale = 1) =>
  tensor(
    Array.from({ length: n }, (_, i) => i * scale),
    { dtype: torch.float32 },
  );

const f64 = (data: torch.TensorData, grad = false) =>
  tensor(data, { dtype: torch.float64, requiresGrad: grad });

function gradient(data: torch.TensorData, f: (x: T) => T): unknown {
  const x = f64(data, true);
  f(x).sum().backward();
  return x.grad!.tolist();
}

function close(actual: T, expected: torch.TensorData): void {
  const want = tensor(expected, { dtype: torch.float64 });
  expect(actual.shape).toEqual(want.shape);
  const same = torch.allclose(actual.to(torch.float64), want, { rtol: 1e-6, equalNan: true });
  expect(same, `${String(actual)} against ${String(want)}`).toBe(true);
}

describe("sums", () => {
  test("over inner, outer and mixed dims of any layout", () => {
    const x = range(2 * 3 * 4 * 5).reshape(2, 3, 4, 5);
    const whole = (2 * 3 * 4 * 5 * 119) / 2;
    expect(x.sum().item()).toBe(whole);
    for (const y of [x, x.transpose(0, 3), x.transpose(1, 2), x.permute(2, 0, 3, 1)]) {
      for (const dims of [[0], [1], [2], [3], [0, 2], [1, 3], [0, 1, 3], [0, 1, 2, 3]]) {
        const all = y.sum(dims);
        expect(all.sum().item()).toBe(whole);
        expect(torch.equal(all, y.contiguous().sum(dims))).toBe(true);
      }
    }
  });
  test("of many floats are right to the last bits", () => {
    const x = torch.full([3_000_001], 0.1);
    expect(x.sum().item() as number).toBeCloseTo(3_000_001 * Math.fround(0.1), 0);
    const columns = torch.ones([40_000, 300]);
    expect(columns.sum(0).sum().item()).toBe(12_000_000);
  });
  test("of bytes and booleans do not wrap (A13)", () => {
    const u = tensor([250, 255, 7], { dtype: torch.uint8 });
    expect(u.sum().dtype).toBe(torch.int64);
    expect(u.sum().item()).toBe(512);
    expect(u.cumsum(0).tolist()).toEqual([250, 505, 512]);
    expect(() => u.mean()).toThrow(torch.DTypeError);
    expect(u.mean({ dtype: torch.float32 }).item() as number).toBeCloseTo(170.66667, 4);
    expect(u.to(torch.float32).std().item() as number).toBeCloseTo(141.76154, 3);
    expect(torch.ones([300], { dtype: torch.bool }).sum().item()).toBe(300);
  });
  test("of nothing (A28)", () => {
    const none = torch.zeros([0]);
    expect(none.sum().item()).toBe(0);
    expect(none.prod().item()).toBe(1);
    expect(none.mean().item()).toBeNaN();
    expect(none.logsumexp(0).item()).toBe(-Infinity);
    expect(() => none.max()).toThrow(torch.ShapeError);
    expect(() => none.argmax()).toThrow(torch.ShapeError);
    expect(() => torch.zeros([3, 0]).max(1)).toThrow(torch.IndexError);
    expect(torch.zeros([0, 3]).max(1).values.shape).toEqual([0]);
  });
});

describe("moments (A28, A19)", () => {
  test("of few elements and large corrections", () => {
    expect(f64([3]).std().item()).toBeNaN();
    expect(f64([3]).var({ unbiased: false }).item()).toBe(0);
    const x = f64([1, 3, 8]);
    close(x.var({ correction: 0 }), 8.6666667);
    close(x.var(0, { correction: 2 }), 26);
    expect(x.var({ correction: 3 }).item()).toBe(Infinity);
    expect(gradient([7, 7, 7], (t) => t.std())).toEqual([0, 0, 0]);
  });
  test("with a large mean", () => {
    const x = tensor([60001, 60003, 60000, 60004]);
    expect(x.var().item() as number).toBeCloseTo(3.3333, 3);
  });
  test("std takes dim, unbiased and keepdim in PyTorch's ways", () => {
    const x = f64([
      [1, 2],
      [3, 7],
    ]);
    close(x.std(1, false), [0.5, 2]);
    close(torch.std(x, 1, true, true), [[Math.SQRT1_2], [Math.SQRT1_2 * 4]]);
    close(torch.var(x, false), 5.1875);
    const [v, m] = torch.varMean(x, 0);
    close(v!, [2, 12.5]);
    close(m!, [2, 4.5]);
  });
});

describe("extremes", () => {
  test("max has three forms", () => {
    const x = tensor([
      [1, 5, 2],
      [7, 0, 7],
    ]);
    expect(x.max().item()).toBe(7);
    const { values, indices } = x.max(1);
    expect(values.tolist()).toEqual([5, 7]);
    expect(indices.tolist()).toEqual([1, 0]);
    expect(torch.max(x, { dim: 0, keepdim: true }).indices.tolist()).toEqual([[1, 0, 1]]);
    expect(torch.min(x, tensor([3])).tolist()).toEqual([
      [1, 3, 2],
      [3, 0, 3],
    ]);
    expect(x.argmax().item()).toBe(3);
    expect(x.argmin(1, true).tolist()).toEqual([[0], [1]]);
  });
  test("NaN wins anywhere", () => {
    for (const at of [0, 500, 1002]) {
      const x = torch.zeros([1003]);
      x.indexPut_([at], NaN);
      expect(x.max().item()).toBeNaN();
      expect(x.min(0).indices.item()).toBe(at);
      expect(torch.amax(x.unsqueeze(1).expand(1003, 9), 0).isnan().all().item()).toBe(true);
    }
  });
  test("ties (A22)", () => {
    const third = 1 / 3;
    expect(gradient([4, 1, 4, 4], (x) => x.max())).toEqual([third, 0, third, third]);
    expect(gradient([4, 1, 4, 4], (x) => x.max(0).values)).toEqual([1, 0, 0, 0]);
    expect(gradient([4, 1, 4, 4], (x) => x.amax(0))).toEqual([third, 0, third, third]);
    expect(gradient([-4, 1, 4, 2], (x) => x.norm(Infinity))).toEqual([-0.5, 0, 0.5, 0]);
  });
});

describe("norms (A01)", () => {
  const rows = [
    [3, -4, 12],
    [0, 0, 0],
  ];
  const norm = (p: number) => (x: T) => torch.linalg.vectorNorm(x, p, 1);
  test("have gradient 0 at 0", () => {
    expect(gradient(rows, norm(2))).toEqual([
      [3 / 13, -4 / 13, 12 / 13],
      [0, 0, 0],
    ]);
    expect(gradient(rows, norm(Infinity))).toEqual([
      [0, -0, 1],
      [0, 0, 0],
    ]);
    expect(gradient(rows, norm(1))).toEqual([
      [1, -1, 1],
      [0, 0, 0],
    ]);
    expect(gradient(0, (x) => x.norm())).toBe(0);
    expect(gradient([0, 0], (x) => torch.dist(x, x.detach()))).toEqual([0, 0]);
  });
  test("of matrices", () => {
    const x = f64([
      [1, -2],
      [3, 4],
    ]);
    close(torch.linalg.norm(x, "fro"), Math.sqrt(30));
    close(torch.linalg.norm(x, 1), 6);
    close(torch.linalg.matrixNorm(x, -Infinity), 3);
    close(torch.norm(x, 3, 1), [9 ** (1 / 3), 91 ** (1 / 3)]);
  });
});

describe("products (A02)", () => {
  test("have gradients without a division", () => {
    expect(gradient([0, 4, 5], (x) => x.prod())).toEqual([20, 0, 0]);
    expect(gradient([0, 0, 7], (x) => x.prod())).toEqual([0, 0, 0]);
    const weights = f64([1, 10]);
    const rows = (x: T) => x.prod(1).mul(weights);
    expect(
      gradient(
        [
          [0, 4, 5],
          [2, 0, 0],
        ],
        rows,
      ),
    ).toEqual([
      [20, 0, 0],
      [0, 0, 0],
    ]);
  });
  test("have second derivatives at zeros", () => {
    const x = f64([0, 4, 5], true);
    const [g] = torch.autograd.grad([x.prod()], [x], { createGraph: true });
    const [h] = torch.autograd.grad([g!.sum()], [x]);
    expect(h!.tolist()).toEqual([9, 5, 4]);
  });
});

describe("logarithms of sums (A04)", () => {
  const inf = Infinity;
  test("logsumexp", () => {
    close(
      f64([
        [-inf, -inf, -inf],
        [-inf, 2, 2],
      ]).logsumexp(1),
      [-inf, 2.6931471805599454],
    );
    close(
      f64([
        [inf, 1],
        [1000, 1000],
      ]).logsumexp(1),
      [inf, 1000.6931471805599],
    );
    expect(gradient([-inf, 2, 2], (x) => x.logsumexp(0))).toEqual([0, 0.5, 0.5]);
  });
  test("logcumsumexp", () => {
    close(f64([-inf, -inf, 1, 1]).logcumsumexp(0), [-inf, -inf, 1, 1.6931471805599454]);
  });
});

test("long runs of any length are folded whole", () => {
  for (const n of [65_535, 65_536, 66_053, 131_073, 327_683, 2_500_009]) {
    // 0 to 6 in turn: sums are exact.
    const whole = Math.floor(n / 7) * 21 + ((n % 7) * ((n % 7) - 1)) / 2;
    for (const dtype of [torch.float32, torch.float64]) {
      const x = torch.arange(n).remainder(7).to(dtype);
      expect(x.sum().item()).toBe(whole);
      expect(
        x
          .narrow(0, 1, n - 1)
          .sum()
          .item(),
      ).toBe(whole);
      x.narrow(0, n - 2, 1).fill_(-9);
      expect([x.max().item(), x.min().item()]).toEqual([6, -9]);
    }
  }
});

describe("truth and comparison", () => {
  test("any, all and countNonzero take dims", () => {
    const x = tensor([
      [0, 1],
      [0, 0],
    ]);
    expect(x.any().item()).toBe(true);
    expect(x.all([0, 1]).item()).toBe(false);
    expect(x.any(1).tolist()).toEqual([true, false]);
    expect(x.countNonzero(0).tolist()).toEqual([0, 1]);
  });
  test("allclose and isclose", () => {
    const a = f64([1, NaN]);
    expect(torch.allclose(a, a)).toBe(false);
    expect(torch.allclose(a, a, { equalNan: true })).toBe(true);
    expect(torch.isclose(f64([1, 2]), f64([1.1, 2])).tolist()).toEqual([false, true]);
  });
});
