// One loop of the GPU benchmarks in a process of its own; prints what it measured as JSON.
import * as torch from "cresset";
import type { Tensor } from "cresset";

const device = "cuda";

/** A million results of 1 MiB that nobody keeps. */
function garbage(): object {
  const x = torch.ones([256, 1024], { device });
  for (let i = 0; i < 1_000_000; i++) x.add(1);
  torch.cuda.synchronize();
  // The least budget of a device: see cuda_budget_floor in core/tensor/device_runtime.h.
  return { reserved: torch.cuda.maxMemoryReserved() / 2 ** 20, budget: 512 };
}

/** Thirty different elementwise operators and reductions. */
const kernels: ((x: Tensor) => Tensor)[] = [
  (x) => x.add(x),
  (x) => x.sub(x),
  (x) => x.mul(x),
  (x) => x.div(x),
  (x) => x.exp(),
  (x) => x.log(),
  (x) => x.log1p(),
  (x) => x.expm1(),
  (x) => x.sin(),
  (x) => x.cos(),
  (x) => x.tan(),
  (x) => x.tanh(),
  (x) => x.sinh(),
  (x) => x.cosh(),
  (x) => x.atan(),
  (x) => x.sqrt(),
  (x) => x.rsqrt(),
  (x) => x.abs(),
  (x) => x.neg(),
  (x) => x.floor(),
  (x) => x.ceil(),
  (x) => x.round(),
  (x) => x.sigmoid(),
  (x) => x.erf(),
  (x) => x.relu(),
  (x) => x.gt(x),
  (x) => x.eq(x),
  (x) => x.atan2(x),
  (x) => x.sum(),
  (x) => x.amax(),
];

/** Milliseconds from the first launch to the end of the last, after the device was opened. */
function firstUse(): object {
  const x = torch.tensor([0.25, 0.5, 0.75, 1], { device });
  torch.cuda.synchronize();
  const begin = performance.now();
  for (const kernel of kernels) kernel(x);
  torch.cuda.synchronize();
  return { ms: performance.now() - begin };
}

const loops: Record<string, () => object> = { garbage, kernels: firstUse };
console.log(JSON.stringify(loops[process.argv[2]!]!()));
