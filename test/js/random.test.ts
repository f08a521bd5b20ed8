// Random numbers: seeds, generators, states and dropout; PyTorch's numbers are compared in parity.
import { describe, expect, it } from "vitest";
import * as torch from "../../js/src/index.js";

const F = torch.nn.functional;
const list = (t: torch.Tensor) => t.tolist();

describe("generators", () => {
  it("starts over from a seed", () => {
    torch.manualSeed(42);
    const first = list(torch.rand(3));
    expect(first).toEqual([0.8822692632675171, 0.9150039553642273, 0.38286375999450684]);
    torch.manualSeed(42);
    expect(list(torch.rand(3))).toEqual(first);
    expect(torch.initialSeed()).toBe(42);
    torch.manualSeed(2n ** 64n - 1n);
    expect(torch.initialSeed()).toBe(2n ** 64n - 1n);
    expect(() => torch.manualSeed(1.5)).toThrow(torch.ValueError);
    expect(() => torch.manualSeed(2n ** 64n)).toThrow(torch.ValueError);
    expect(torch.seed()).toBe(torch.initialSeed());
  });

  it("draws from a generator of its own", () => {
    torch.manualSeed(1);
    const expected = list(torch.randn(20));
    torch.manualSeed(5);
    const generator = new torch.Generator().manualSeed(1);
    expect(list(torch.randn(20, { generator }))).toEqual(expected);
    const rest = list(torch.rand(2));
    torch.manualSeed(5);
    expect(list(torch.rand(2))).toEqual(rest);
    expect(list(torch.randperm(4, { generator: new torch.Generator().manualSeed(9) }))).toEqual(
      list(torch.randperm(4, { generator: new torch.Generator().manualSeed(9) })),
    );
    generator.dispose();
    expect(() => torch.rand(2, { generator })).toThrow(torch.ValueError);
    expect(() => torch.rand(2, { generator: {} as never })).toThrow(torch.TypeError_);
  });

  it("saves and restores the state", () => {
    torch.manualSeed(3);
    torch.randn(5);
    const state = torch.getRngState();
    const next = list(torch.randn(7));
    torch.setRngState(state);
    expect(list(torch.randn(7))).toEqual(next);
    torch.setRngState(state);
    torch.random.forkRng(() => torch.rand(100));
    expect(list(torch.randn(7))).toEqual(next);
    expect(state.shape).toEqual([5056]);
    const short = torch.zeros(3, { dtype: torch.uint8 });
    expect(() => torch.setRngState(short)).toThrow(torch.ValueError);
  });
});

describe("draws", () => {
  it("visits dense tensors in memory order, others by their strides", () => {
    torch.manualSeed(0);
    const flat = torch.empty(6).uniform_();
    torch.manualSeed(0);
    const turned = torch.empty(2, 3).t().uniform_();
    expect(list(turned.t().reshape(6))).toEqual(list(flat));
    torch.manualSeed(0);
    const column = torch.zeros(6, 2);
    column.select(1, 0).uniform_();
    expect(list(column.select(1, 0))).toEqual(list(flat));
    expect(column.select(1, 1).sum().item()).toBe(0);
  });

  it("takes the forms of PyTorch's signatures", () => {
    expect(torch.randint(5, [3]).dtype).toBe(torch.int64);
    expect(torch.randint(2, 3, [2, 2]).sum().item()).toBe(8);
    expect(torch.randint(3, 4, 5).shape).toEqual([5]);
    expect(torch.randintLike(torch.zeros(3), 1).sum().item()).toBe(0);
    expect(torch.normal(0, 1, [2, 3]).shape).toEqual([2, 3]);
    expect(torch.normal(torch.zeros(3), 0).sum().item()).toBe(0);
    expect(torch.empty(4, { dtype: torch.int64 }).random_(7, 8).sum().item()).toBe(28);
    const chances = torch.tensor([0, 1]);
    expect(list(torch.bernoulli(chances))).toEqual([0, 1]);
    expect(() => torch.bernoulli(torch.tensor([1.5]))).toThrow(torch.ValueError);
    expect(() => torch.empty(2).normal_(0, -1)).toThrow(torch.ValueError);
    expect(() => torch.randint(3, 3, [1])).toThrow(torch.ValueError);
  });
});

describe("dropout", () => {
  it("keeps the expected share and scales it", () => {
    torch.manualSeed(0);
    const y = F.dropout(torch.ones(100000), 0.25);
    const kept = y.ne(0).sum().item() as number;
    expect(Math.abs(kept - 75000)).toBeLessThan(600);
    expect(y.sum().item()).toBeCloseTo((kept * 4) / 3, 0);
  });
  it("is the identity in evaluation and refuses bad rates", () => {
    const x = torch.rand(4);
    expect(list(F.dropout(x, 0.5, false))).toEqual(list(x));
    expect(list(F.dropout(x, 1))).toEqual([0, 0, 0, 0]);
    expect(() => F.dropout(x, 1.5)).toThrow(torch.ValueError);
    expect(F.dropout(x, { p: 0.5, inplace: true })).toBe(x);
  });
  it("drops whole channels, with the same mask in the gradient", () => {
    const x = torch.ones(8, 4, 3, 3, { requiresGrad: true });
    const y = F.dropout2d(x, 0.5);
    y.sum().backward();
    expect(list(x.grad!)).toEqual(list(y.detach()));
    const sums = y.detach().sum([2, 3]).data();
    expect([...sums].every((s) => s === 0 || s === 18)).toBe(true);
  });
});
