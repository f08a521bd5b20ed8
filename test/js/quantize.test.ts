// Quantization as PyTorch computes it; the numbers are PyTorch's.
import { expect, test } from "vitest";
import * as torch from "../../js/src/index.js";

test("fakeQuantizePerTensorAffine rounds halves to even, then clamps", () => {
  const values = [-7, -0.26, -0.05, 0.05, 0.15, 0.25, 1.3, 99];
  const x = torch.tensor(values, { requiresGrad: true });
  const y = torch.fakeQuantizePerTensorAffine(x, 0.1, 3, -8, 7);
  const expected = torch.tensor([-1.1, -0.3, 0, 0, 0.2, 0.2, 0.4, 0.4]);
  expect(torch.allclose(y, expected)).toBe(true);
  y.sum().backward();
  expect(x.grad!.tolist()).toEqual([0, 1, 1, 1, 1, 1, 0, 0]);
});
