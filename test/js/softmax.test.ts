// Softmax and the normalisations: edges, layouts, and cases that broke similar systems.
import { describe, expect, test } from "vitest";
import * as torch from "../../js/src/index.js";

const tensor = (data: torch.TensorData) => torch.tensor(data, { dtype: torch.float32 });
const range = (n: number, scale = 1) => tensor(Array.from({ length: n }, (_, i) => i * scale));

test("softmax of extreme rows and of every dim", () => {
  const inf = Infinity;
  const x = tensor([
    [1000, 1000, -inf],
    [-inf, 0, 0],
  ]);
  expect(torch.softmax(x, 1).tolist()).toEqual([
    [0.5, 0.5, 0],
    [0, 0.5, 0.5],
  ]);
  expect(
    torch
      .softmax(tensor([-inf, -inf]), 0)
      .isnan()
      .all()
      .item(),
  ).toBe(true);
  const wide = range(7 * 37, 0.01).reshape(7, 37);
  const columns = torch.softmax(wide, 0);
  const rows = torch.softmax(wide.transpose(0, 1).contiguous(), 1).transpose(0, 1);
  expect(torch.allclose(columns, rows)).toBe(true);
  const logs = torch.logSoftmax(wide, -1);
  expect(torch.allclose(torch.exp(logs), torch.softmax(wide, -1))).toBe(true);
  expect(() => torch.softmax(x, 5)).toThrow(/softmax: expected dim in \[-2, 1\]/);
  expect(() => torch.softmax(tensor([1, 2]).to(torch.int64), 0)).toThrow(torch.DTypeError);
});

describe("a large mean does not cancel (A19)", () => {
  const values = [60001, 60003, 60000, 60004];
  const want = tensor([-0.63245, 0.63245, -1.26491, 1.26491]);
  const near = (y: torch.Tensor) =>
    expect(torch.allclose(y.reshape(-1), want, { atol: 3e-3, rtol: 0 })).toBe(true);
  test("layer, group and batch normalisation", () => {
    near(torch.layerNorm(tensor([values]), [4]));
    near(torch.groupNorm(tensor([[values]]), 1));
    near(torch.batchNorm(tensor([[values]]), null, null, { training: true }));
  });
  test("constant rows give exactly 0", () => {
    expect(
      torch
        .layerNorm(torch.full([1, 128], 5.5), [128])
        .abs()
        .max()
        .item(),
    ).toBe(0);
    const weight = torch.ones([1], { requiresGrad: true });
    const y = torch.layerNorm(tensor([[1], [7], [-3]]), [1], weight);
    y.sum().backward();
    expect(y.tolist()).toEqual([[0], [0], [0]]);
    expect(weight.grad!.tolist()).toEqual([0]);
  });
});

test("batchNorm keeps running statistics and uses them", () => {
  const x = range(24).reshape(2, 3, 4);
  const mean = torch.zeros([3]);
  const variance = torch.ones([3]);
  torch.batchNorm(x, mean, variance, { training: true, momentum: 0.5 });
  expect(mean.tolist()).toEqual([3.75, 5.75, 7.75]);
  const unbiased = x.select(1, 0).var().item() as number;
  expect(variance.select(0, 0).item() as number).toBeCloseTo(0.5 + unbiased / 2, 4);
  const y = torch.batchNorm(x, mean, variance);
  const scale = Math.sqrt((variance.select(0, 0).item() as number) + 1e-5);
  const second = y.select(0, 0).select(0, 0).select(0, 1).item() as number;
  expect(second).toBeCloseTo((1 - 3.75) / scale, 5);
  const single = torch.ones([1, 3]);
  expect(() => torch.batchNorm(single, null, null, { training: true })).toThrow(torch.ValueError);
});

test("fused gradients equal those of the formulas", () => {
  const f64 = (data: torch.TensorData, requiresGrad = false) =>
    torch.tensor(data, { dtype: torch.float64, requiresGrad });
  const make = () =>
    f64(
      [
        [0.3, -1.2, 2.5, 0.1],
        [1.4, 0.2, -0.6, 3.1],
      ],
      true,
    );
  const weigh = f64([0.5, -1, 2, 0.25]);
  const functions = [
    (x: torch.Tensor) => torch.layerNorm(x, [4], weigh),
    (x: torch.Tensor) => torch.groupNorm(x, 2, weigh),
    (x: torch.Tensor) => torch.batchNorm(x, null, null, weigh, { training: true }),
    (x: torch.Tensor) => torch.softmax(x, 1),
    (x: torch.Tensor) => torch.logSoftmax(x, 0),
  ];
  for (const f of functions) {
    const x = make();
    const y = f(x).mul(f(x)).mul(weigh).sum();
    const [fused] = torch.autograd.grad([y], [x], { retainGraph: true });
    const [formula] = torch.autograd.grad([y], [x], { createGraph: true });
    expect(torch.allclose(fused!, formula!, { rtol: 1e-9, atol: 1e-10 })).toBe(true);
  }
});
