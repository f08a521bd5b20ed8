// Convolutions and pooling: values, gradients of gradients, edges of windows, refused arguments.
import { describe, expect, test } from "vitest";
import * as torch from "cresset";
import type { Tensor } from "cresset";
import { gradcheck, gradgradcheck } from "../../js/src/gradcheck.js";

const F = torch.nn.functional;
const range = (n: number, ...shape: number[]) =>
  torch
    .arange(1, n + 1)
    .to(torch.float64)
    .view(shape);

describe("convolutions", () => {
  test("every spelling of the arguments gives one result", () => {
    const x = range(32, 1, 2, 4, 4);
    const w = range(18, 1, 2, 3, 3);
    const b = torch.tensor([1], { dtype: torch.float64 });
    const want = F.conv2d(x, w, b, 1, 1).tolist();
    expect(F.conv2d(x, w, { bias: b, padding: 1 }).tolist()).toEqual(want);
    expect(F.conv2d(x, w, b, 1, "same").tolist()).toEqual(want);
    expect(F.conv2d(x, w, b, { padding: "same" }).tolist()).toEqual(want);
    expect(F.conv2d(x.squeeze(0), w, b, 1, [1, 1]).shape).toEqual([1, 4, 4]);
    expect(F.conv2d(x, w, null, 1, "valid").shape).toEqual([1, 1, 2, 2]);
  });

  test("an even kernel with padding same adds its odd row at the end", () => {
    const y = F.conv1d(range(3, 1, 1, 3), torch.ones([1, 1, 2], { dtype: torch.float64 }), {
      padding: "same",
    });
    expect(y.tolist()).toEqual([[[3, 5, 3]]]);
  });

  test("second derivatives agree with differences", () => {
    torch.manualSeed(0);
    const leaf = (...shape: number[]) =>
      torch.randn(shape, { dtype: torch.float64, requiresGrad: true });
    const inputs = [leaf(2, 4, 5, 4), leaf(6, 2, 2, 3), leaf(6)];
    const f = (x: Tensor, w: Tensor, b: Tensor) => F.conv2d(x, w, b, [2, 1], 1, [1, 2], 2);
    expect(gradcheck(f, inputs)).toBe(true);
    expect(gradgradcheck(f, inputs)).toBe(true);
    const back = [leaf(1, 4, 3), leaf(4, 2, 2), leaf(4)];
    const g = (x: Tensor, w: Tensor, b: Tensor) => F.convTranspose1d(x, w, b, 2, 1, 1, 2);
    expect(gradgradcheck(g, back)).toBe(true);
  });

  test("a gradient penalty through two layers keeps memory constant", () => {
    const net = new torch.nn.Sequential(new torch.nn.Conv2d(1, 4, 3), new torch.nn.Conv2d(4, 1, 3));
    const step = () => {
      const x = torch.randn([2, 1, 16, 16], { requiresGrad: true });
      const [g] = torch.autograd.grad(net(x).pow(2).sum(), [x], { createGraph: true });
      g!.pow(2).sum().backward();
      for (const p of net.parameters()) p.grad = null;
    };
    for (let i = 0; i < 20; i++) step();
    torch.memory.collect();
    const before = torch.memory.stats().allocated;
    for (let i = 0; i < 200; i++) step();
    torch.memory.collect();
    expect(torch.memory.stats().allocated).toBeLessThanOrEqual(before);
  });

  test("wrong arguments are named", () => {
    const x = torch.ones([1, 2, 4, 4]);
    const w = torch.ones([3, 2, 3, 3]);
    expect(() => F.conv2d(x, torch.ones([3, 1, 3, 3]))).toThrow(/conv2d: weight of shape/);
    expect(() => F.conv2d(x, w, null, 0)).toThrow(/conv2d: expected stride of at least 1/);
    expect(() => F.conv2d(x, w, null, 1, -1)).toThrow(/conv2d: expected padding/);
    expect(() => F.conv2d(x, w, null, 1, 0, 3)).toThrow(/conv2d: the kernel reaches over 7/);
    expect(() => F.conv2d(x, w, null, 2, "same")).toThrow(/expects stride 1/);
    expect(() => F.conv2d(x, w.to(torch.float64))).toThrow(torch.DTypeError);
  });
});

describe("pooling", () => {
  test("ceilMode adds no window of padding and divides an overhanging one by its part", () => {
    const shape = (h: number, w: number, k: number, s: number, p: number) =>
      F.maxPool2d(torch.ones([1, 1, h, w]), k, s, p, 1, true).shape.slice(2);
    expect(shape(8, 9, 1, 3, 0)).toEqual([3, 3]);
    expect(shape(7, 6, 2, 2, 1)).toEqual([4, 4]);
    const down = range(7, 1, 1, 7).neg();
    expect(F.maxPool1d(down, 2, 2, 1, 1, true).tolist()).toEqual([[[-1, -2, -4, -6]]]);
    const ceil = { ceilMode: true };
    const avg = (n: number, k: number, s: number, o: object) =>
      F.avgPool1d(range(n, 1, 1, n), k, { stride: s, ...ceil, ...o }).tolist();
    expect(avg(8, 3, 3, {})).toEqual([[[2, 5, 7.5]]]);
    expect(avg(9, 4, 3, { padding: 1 })).toEqual([[[1.5, 4.5, 7.5, 4.5]]]);
    expect(avg(9, 4, 3, { padding: 1, countIncludePad: false })).toEqual([[[2, 4.5, 7.5, 9]]]);
    expect(() => F.maxPool1d(down, 2, 2, 2)).toThrow(/at most half the window/);
  });

  test("the first of equal maxima takes the gradient", () => {
    const x = torch.tensor([[[3, 3]]], { dtype: torch.float64, requiresGrad: true });
    F.maxPool1d(x, 2).sum().backward();
    expect(x.grad!.tolist()).toEqual([[[1, 0]]]);
  });

  test("unpooling puts maxima back; indices are checked", () => {
    const x = range(16, 1, 1, 4, 4);
    const [y, at] = F.maxPool2d(x, 2, { returnIndices: true });
    const back = F.maxUnpool2d(y, at, 2);
    expect(back.sum().item()).toBe(y.sum().item());
    expect(() => F.maxUnpool2d(y, at.add(100), 2)).toThrow(torch.IndexError);
  });

  test("unfold and fold are each other's transpose", () => {
    const x = range(16, 1, 1, 4, 4);
    const columns = F.unfold(x, 2, 1, 1, 2);
    expect(columns.shape).toEqual([1, 4, 9]);
    expect(F.fold(columns, [4, 4], 2, 1, 1, 2).tolist()).toEqual(x.tolist());
  });

  test("adaptive sizes may be left to the input", () => {
    const x = range(24, 1, 1, 4, 6);
    expect(F.adaptiveAvgPool2d(x, [null, 3]).shape).toEqual([1, 1, 4, 3]);
    expect(F.adaptiveMaxPool2d(x, 1).item()).toBe(24);
  });
});
