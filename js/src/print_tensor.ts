// Prints a tensor as PyTorch does: hands its values to the formatter in print.ts.
import { gatherData } from "./convert.js";
import { bool, dtypes } from "./dtype.js";
import * as ops from "./ops.gen.js";
import { formatTensor as format } from "./print.js";
import type { Tensor } from "./tensor.js";

/** The text of console.log(t). */
export function formatTensor(t: Tensor, parameter = false): string {
  if (t.isDisposed) return "tensor(<disposed>)";
  const { shape, dtype, device } = t;
  const data = device.type === "meta" ? [] : gatherData(t);
  const step = dtype.isComplex ? 2 : 1;
  return format({
    shape,
    dtype: dtype.name,
    at: (i) => (dtype === bool ? data[i] !== 0 : data[step * i]!),
    imagAt: (i) => Number(data[2 * i + 1]),
    device: String(device),
    requiresGrad: t.requiresGrad,
    gradFn: t.gradFn?.name ?? null,
    defaultDtype: dtypes[ops._defaultDtype()]!.name,
    parameter,
  });
}
