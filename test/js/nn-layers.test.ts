// Layers, saving and clipping: what parity's recordings do not reach.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import * as torch from "../../js/src/index.js";
import { nn, optim, Tensor } from "../../js/src/index.js";

const folder = mkdtempSync(join(tmpdir(), "cresset-nn-"));
afterAll(() => rmSync(folder, { recursive: true }));

const close = (t: Tensor, expected: number[], digits = 6) => {
  const found = Array.from(t.reshape([-1]).data(), Number);
  expect(found.length).toBe(expected.length);
  expected.forEach((x, i) => expect(found[i]).toBeCloseTo(x, digits));
};

describe("initial weights are PyTorch's for a seed", () => {
  test("Linear: weight, then bias", () => {
    torch.manualSeed(0);
    const layer = new nn.Linear(2, 2);
    // torch.manual_seed(0); torch.nn.Linear(2, 2)
    close(layer.weight, [-0.005294, 0.3793229, -0.5819808, -0.5203875]);
    close(layer.bias!, [-0.2723452, 0.1896159]);
  });
  test("Transformer, and the draw after it", () => {
    torch.manualSeed(3);
    const model = new nn.Transformer(4, 2, 1, 1, { dimFeedforward: 8 });
    const sizes = model.parameters().map((p) => Number(p.abs().sum().item()));
    expect(sizes.reduce((a, b) => a + b)).toBeCloseTo(140.4986, 3);
    expect(torch.rand([1]).item()).toBeCloseTo(0.7958478, 6);
  });
  test("Embedding: the padding row is 0", () => {
    torch.manualSeed(0);
    const layer = new nn.Embedding(3, 2, { paddingIdx: -2 });
    expect(layer.weight.tolist()).toMatchObject([{}, [0, 0], {}]);
    expect(String(layer)).toBe("Embedding(3, 2, padding_idx=1)");
  });
});

test("a model trains, is saved, and loads into another one with equal results", () => {
  torch.manualSeed(0);
  const make = () =>
    new nn.Sequential(
      new nn.Conv2d(1, 4, 3, { padding: 1 }),
      new nn.BatchNorm2d(4),
      new nn.ReLU(),
      new nn.MaxPool2d(2),
      new nn.Flatten(),
      new nn.Linear(36, 3),
    );
  const model = make();
  const x = torch.randn([8, 1, 6, 6]);
  const y = torch.randint(0, 3, [8]);
  const optimizer = new optim.AdamW(model.parameters(), { lr: 0.05 });
  const losses = Array.from({ length: 30 }, () => {
    optimizer.zeroGrad();
    const loss = nn.functional.crossEntropy(model(x), y);
    loss.backward();
    optimizer.step();
    return Number(loss.item());
  });
  expect(losses.at(-1)!).toBeLessThan(losses[0]! / 4);
  const file = join(folder, "model.safetensors");
  torch.saveFile(model.stateDict(), file);
  const state = join(folder, "optimizer.safetensors");
  torch.save(optimizer.stateDict(), state);
  const other = make();
  other.loadStateDict(torch.loadFile(file));
  other.eval();
  model.eval();
  expect(other(x).tolist()).toEqual(model(x).tolist());
  const resumed = new optim.AdamW(other.parameters());
  resumed.loadStateDict(torch.load(state) as optim.OptimizerState);
  for (const [m, o] of [
    [model, optimizer],
    [other, resumed],
  ] as const) {
    o.zeroGrad();
    nn.functional.crossEntropy(m(x), y).backward();
    o.step();
  }
  expect(other(x).tolist()).toEqual(model(x).tolist());
});

test("clipping by norm and by value", () => {
  const p = torch.zeros([2]).requiresGrad_(true);
  p.grad = torch.tensor([3, 4]);
  expect(nn.utils.clipGradNorm_([p], 10).item()).toBe(5);
  close(p.grad, [3, 4]);
  nn.utils.clipGradNorm_([p], 1);
  close(p.grad, [0.6, 0.8], 5);
  expect(nn.utils.getTotalNorm([torch.tensor([-3, 2])], Infinity).item()).toBe(3);
  nn.utils.clipGradValue_([p], 0.7);
  close(p.grad, [0.6, 0.7], 5);
  p.grad = torch.tensor([Infinity, 1]);
  expect(() => nn.utils.clipGradNorm_([p], 1, { errorIfNonfinite: true })).toThrow(
    torch.ValueError,
  );
  const vector = nn.utils.parametersToVector([p, torch.ones([1, 2])]);
  expect(vector.tolist()).toEqual([0, 0, 1, 1]);
  nn.utils.vectorToParameters(torch.tensor([5, 6]), [p]);
  expect(p.tolist()).toEqual([5, 6]);
});

describe("recurrent layers", () => {
  test("stacked, both directions, batch first", () => {
    torch.manualSeed(0);
    const lstm = new nn.LSTM(3, 4, 2, { bidirectional: true, batchFirst: true });
    const [output, [h, c]] = lstm(torch.randn([2, 5, 3]));
    expect([output.shape, h.shape, c.shape]).toEqual([
      [2, 5, 8],
      [4, 2, 4],
      [4, 2, 4],
    ]);
    expect(String(lstm)).toBe("LSTM(3, 4, num_layers=2, batch_first=True, bidirectional=True)");
    output.sum().backward();
    expect(lstm.parameters().every((p) => p.grad !== null)).toBe(true);
    expect(() => lstm(torch.randn([2, 5, 4]))).toThrow(torch.ShapeError);
  });
});

describe("init", () => {
  test("gains, fans and errors", () => {
    expect(nn.init.calculateGain("leakyRelu", 1)).toBe(1);
    expect(nn.init.calculateGain("tanh")).toBe(5 / 3);
    expect(nn.init.fans(torch.empty([2, 3, 4]))).toEqual([12, 8]);
    expect(() => nn.init.xavierUniform_(torch.empty([2]))).toThrow(torch.ShapeError);
    close(nn.init.eye_(torch.empty([2, 3])), [1, 0, 0, 0, 1, 0]);
  });
  test("truncNormal_ stays inside its bounds", () => {
    torch.manualSeed(0);
    const t = nn.init.truncNormal_(torch.empty([1000]), 1, 2, 0, 2);
    const data = Array.from(t.data(), Number);
    expect(Math.min(...data)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...data)).toBeLessThanOrEqual(2);
  });
});

test("a window of localResponseNorm may be wider than the channels", () => {
  const x = torch.randn([2, 3, 2]);
  const y = (size: number, alpha: number) =>
    torch.nn.functional.localResponseNorm(x, size, alpha, 0.5);
  // All channels are in the window: only the divisor grows.
  expect(torch.allclose(y(7, 7), y(2 ** 31, 2 ** 31))).toBe(true);
  const all = x.div(x.square().sum(1, true).add(1).sqrt());
  expect(torch.allclose(y(7, 7), all)).toBe(true);
});
