// Corners of elementwise operators; the results are PyTorch's.
import { expect, test } from "vitest";
import * as torch from "../../js/src/index.js";

test("masks have powers, but no differences", () => {
  const mask = torch.tensor([true, false]);
  const square = mask.pow(2);
  expect(square.dtype).toBe(torch.int64);
  expect(square.tolist()).toEqual([1, 0]);
  expect(torch.tensor([2, 3]).pow(mask).tolist()).toEqual([2, 1]);
  expect(() => mask.pow(mask)).toThrow("pow: expected a dtype other than bool");
  expect(() => torch.tensor([1, 2]).sub(mask)).toThrow("sub: expected a dtype other than bool");
  expect(torch.nn.functional.mseLoss(torch.tensor([1, 2]), mask).item()).toBe(2);
});

test("an expanded tensor can be filled", () => {
  const row = torch.zeros([1, 3]);
  expect(row.expand([2, 3]).fill_(4).sum().item()).toBe(24);
  expect(row.tolist()).toEqual([[4, 4, 4]]);
  expect(() => row.expand([2, 3]).add_(1)).toThrow("single memory location");
});

test("a result beside other data leaves it alone", () => {
  for (const [from, n] of [
    [0, 1],
    [0, 4],
    [16, 17],
    [32, 15],
    [3, 16],
  ] as const) {
    const base = torch.zeros([64]);
    const part = base.narrow(0, from, n);
    part.add_(torch.ones([n]));
    part.exp_();
    expect(base.sum().item()).toBeCloseTo(n * Math.E, 3);
    expect(base.ne(0).sum().item()).toBe(n);
  }
  const grown = torch.ones([4]).add(torch.ones([4]));
  grown.resize_([32]).narrow(0, 4, 28).zero_();
  expect(grown.sum().item()).toBe(8);
});

test("inner multiplies by a 0-d tensor of any dtype", () => {
  const scale = torch.tensor(2n);
  expect(torch.inner(scale, torch.tensor([1.5, 2])).tolist()).toEqual([3, 4]);
});

test("windows are PyTorch's", () => {
  const close = (a: torch.Tensor, b: number[]) =>
    torch.allclose(a, torch.tensor(b), { atol: 1e-6 });
  expect(close(torch.hannWindow(4), [0, 0.5, 1, 0.5])).toBe(true);
  expect(close(torch.hammingWindow(4, false), [0.08, 0.77, 0.77, 0.08])).toBe(true);
  expect(close(torch.bartlettWindow(5), [0, 0.4, 0.8, 0.8, 0.4])).toBe(true);
  expect(close(torch.blackmanWindow(4), [0, 0.34, 1, 0.34])).toBe(true);
  const kaiser = [5.2773437e-5, 0.10171971, 0.79293943, 0.79293943, 0.10171971];
  expect(close(torch.kaiserWindow(5), kaiser)).toBe(true);
});
