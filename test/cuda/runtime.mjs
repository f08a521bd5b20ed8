// What only a GPU can show of torch.cuda: `node test/cuda/runtime.mjs [path of Cresset's entry]`
// prints a line per check and fails when one does.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const entry = process.argv[2] ?? new URL("../../dist/index.js", import.meta.url).pathname;
const torch = await import(pathToFileURL(resolve(entry)).href);
const { cuda } = torch;
const on = { device: "cuda" };
const MiB = 2 ** 20;
const GiB = 2 ** 30;

const checks = [];
const check = (name, fn) => checks.push([name, fn]);
function same(got, want, tolerance = 0) {
  const a = Array.isArray(got) ? got.flat(9) : [got];
  const b = Array.isArray(want) ? want.flat(9) : [want];
  const near = (x, y) => (typeof y === "number" ? Math.abs(x - y) <= tolerance : x === y);
  if (a.length === b.length && a.every((x, i) => near(x, b[i]))) return;
  throw new Error(`expected ${JSON.stringify(want)}, got ${JSON.stringify(got)}`);
}
function throws(fn, type, text) {
  try {
    fn();
  } catch (error) {
    if (error instanceof type && text.test(error.message)) return;
    throw new Error(`expected ${type.name} ${text}, got ${error}`);
  }
  throw new Error(`expected ${type.name}, nothing was thrown`);
}
const free = () => {
  torch.memory.collect();
  cuda.synchronize();
  cuda.emptyCache();
};
// About 20 ms of work for the current stream on a large GPU.
const busy = torch.ones([8192, 8192], on);
const work = () => busy.matmul(busy);

check("devices", () => {
  same(cuda.isAvailable() && cuda.whyNot() === null, true);
  const p = cuda.getDeviceProperties();
  same(cuda.getDeviceName(), p.name);
  same(cuda.getDeviceCapability(), [p.major, p.minor]);
  const [left, total] = cuda.memGetInfo();
  same(left > 0 && left <= total && p.totalMemory <= total * 1.1, true);
  same(
    cuda.withDevice(0, () => cuda.currentDevice()),
    0,
  );
  console.log(`    ${p.name}, ${p.multiProcessorCount} multiprocessors`);
});

check("streams and events", () => {
  const side = new cuda.Stream();
  const [a, b] = [new cuda.Event({ enableTiming: true }), new cuda.Event({ enableTiming: true })];
  const y = cuda.withStream(side, () => {
    same(cuda.currentStream().equals(side), true);
    a.record();
    const r = work();
    b.record();
    return r;
  });
  same(side.query(), false);
  cuda.currentStream().waitStream(side);
  same(y.index(0, 0).item(), 8192);
  side.synchronize();
  same(side.query() && b.query(), true);
  same(a.elapsedTime(b) > 0, true);
  throws(() => a.elapsedTime(new cuda.Event()), torch.ValueError, /recorded/);
  same(cuda.currentStream().equals(cuda.defaultStream()), true);
});

check("memory counters and snapshot", () => {
  free();
  const before = cuda.memoryAllocated();
  cuda.resetPeakMemoryStats();
  const x = torch.zeros([5 * MiB], { ...on, dtype: torch.uint8 });
  same(cuda.memoryAllocated() - before, 5 * MiB);
  same(cuda.maxMemoryAllocated() - before, 5 * MiB);
  same(cuda.memoryReserved() >= cuda.memoryAllocated(), true);
  const blocks = cuda.memorySnapshot().flatMap((s) => s.blocks);
  same(
    blocks.some((k) => k.size === 5 * MiB && k.state === "active_allocated"),
    true,
  );
  x.dispose();
  same(cuda.memoryAllocated(), before);
  same(cuda.memorySummary().includes("reserved"), true);
});

check("recordStream: the copy holds the old values, the memory comes back (G04)", () => {
  const side = new cuda.Stream();
  for (let i = 0; i < 50; i++) {
    const x = torch.full([MiB], i, on);
    side.waitStream(cuda.currentStream());
    const copy = cuda.withStream(side, () => {
      work();
      return x.clone();
    });
    x.recordStream(side);
    x.dispose();
    torch.full([MiB], 7777, on);
    cuda.currentStream().waitStream(side);
    same([copy.min().item(), copy.max().item()], [i, i]);
  }
  free();
});

check("non-blocking copies (G05)", async () => {
  const x = torch.arange(16 * MiB, on);
  for (let i = 0; i < 20; i++) {
    const y = x.add(i);
    const host = y.to("cpu", { nonBlocking: true });
    same(host.isPinned(), true);
    same(host.index(-1).item(), 16 * MiB - 1 + i);
    const source = torch.full([MiB], i).pinMemory();
    const there = source.to("cuda", { nonBlocking: true });
    source.dispose();
    torch.full([MiB], -1).pinMemory();
    same([there.min().item(), there.max().item()], [i, i]);
  }
  same((await x.index("0:3").dataAsync()).length, 3);
});

check("asynchronous reads let the event loop run", async () => {
  // The first launch of a kernel loads it, for which CUDA may wait until the device is idle.
  busy.mul(1e-4).sum().item();
  let y = work();
  for (let i = 0; i < 20; i++) y = busy.matmul(y).mul(1e-4);
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  await y.sum().itemAsync();
  clearInterval(timer);
  same(turns > 3, true);
});

check("random numbers are PyTorch's", () => {
  torch.manualSeed(0);
  same(torch.rand([6], on).tolist(), [0.399, 0.5167, 0.0249, 0.9401, 0.9459, 0.7967], 1e-4);
  torch.manualSeed(0);
  const want = [-0.9247, -0.4253, -2.6438, 0.1452, -0.1209, -0.5797];
  same(torch.randn([6], on).tolist(), want, 1e-4);
  const state = cuda.getRngState();
  const a = torch.rand([1000], on);
  cuda.setRngState(state);
  same(torch.rand([1000], on).sub(a).abs().max().item(), 0);
  const g = new torch.Generator("cuda").manualSeed(5);
  const b = torch.randn([100003], { ...on, generator: g });
  same(b.mean().item(), 0, 0.02);
  same(b.std().item(), 1, 0.02);
  const bad = { ...on, generator: new torch.Generator() };
  throws(() => torch.rand([2], bad), torch.DeviceError, /generator/);
  same(torch.randint(10, [1000], on).max().item(), 9);
  same(torch.randperm(1000, on).sort().values.sub(torch.arange(1000, on)).abs().max().item(), 0);
  const p = torch.full([100000], 0.3, on);
  same(torch.bernoulli(p).mean().item(), 0.3, 0.01);
  same(
    torch.nn.functional
      .dropout(torch.ones([100000], on), 0.25)
      .mean()
      .item(),
    1,
    0.02,
  );
  same(
    torch
      .poisson(torch.full([100000], 4, on).float())
      .mean()
      .item(),
    4,
    0.05,
  );
  const drawn = torch.multinomial(torch.tensor([0, 1, 3], on).float(), 10000, true);
  same(drawn.eq(2).float().mean().item(), 0.75, 0.03);
  same(drawn.eq(0).any().item(), false);
});

check("a graph replays on new inputs, with new random numbers", () => {
  const x = torch.ones([4], on);
  let y;
  let r;
  const g = cuda.graph(() => {
    y = x.mul(2).add(1);
    r = torch.rand([4], on);
  });
  g.replay();
  same(y.tolist(), [3, 3, 3, 3]);
  const first = r.tolist();
  x.fill_(10);
  g.replay();
  same(y.tolist(), [21, 21, 21, 21]);
  same(
    r.tolist().some((v, i) => v !== first[i]),
    true,
  );
  g.reset();
  throws(() => g.replay(), torch.ValueError, /reset/);
});

check("what cannot be captured is refused and the capture ends", () => {
  const x = torch.ones([4], on);
  throws(() => cuda.graph(() => x.sum().item()), torch.NotImplementedError, /captured/);
  throws(() => cuda.graph(() => cuda.synchronize()), torch.NotImplementedError, /captured/);
  throws(() => cuda.graph(() => torch.tensor([1], on)), torch.NotImplementedError, /pinned/);
  same(cuda.isCurrentStreamCapturing(), false);
  same(x.add(1).sum().item(), 8);
});

check("a captured training step", () => {
  torch.manualSeed(1);
  const model = new torch.nn.Sequential(
    new torch.nn.Linear(8, 16),
    new torch.nn.ReLU(),
    new torch.nn.Linear(16, 1),
  ).to("cuda");
  const optimizer = new torch.optim.SGD(model.parameters(), { lr: 0.1 });
  const x = torch.randn([32, 8], on);
  const target = x.sum(1, true);
  let loss;
  const step = () => {
    optimizer.zeroGrad();
    loss = torch.nn.functional.mseLoss(model(x), target);
    loss.backward();
    optimizer.step();
  };
  const side = new cuda.Stream();
  cuda.withStream(side, () => {
    for (let i = 0; i < 3; i++) step();
  });
  cuda.synchronize();
  const before = loss.item();
  const g = cuda.graph(step);
  for (let i = 0; i < 100; i++) g.replay();
  same(loss.item() < before / 4, true);
});

check("a captured step of Adam counts on the GPU, or is refused", () => {
  const make = (capturable) => {
    const p = torch.ones([4], { ...on, requiresGrad: true });
    p.grad = torch.ones([4], on);
    const optimizer = new torch.optim.Adam([p], { lr: 0.1, capturable });
    optimizer.step();
    return [p, optimizer];
  };
  const [p, counted] = make(true);
  const g = cuda.graph(() => counted.step());
  for (let i = 0; i < 3; i++) g.replay();
  same(p.tolist(), [0.6, 0.6, 0.6, 0.6], 1e-5);
  const [, uncounted] = make(false);
  throws(() => cuda.graph(() => uncounted.step()), torch.NotImplementedError, /capturable/);
});

check("ranges are made on the GPU, in graphs too", () => {
  let y;
  const g = cuda.graph(() => {
    y = torch.arange(5, on).add(torch.linspace(0, 1, 5, on));
  });
  g.replay();
  same(y.tolist(), [0, 1.25, 2.5, 3.75, 5], 1e-6);
});

check("makeGraphedCallables has a backward", () => {
  const layer = new torch.nn.Linear(4, 3).to("cuda");
  const sample = torch.randn([2, 4], { ...on, requiresGrad: true });
  const graphed = cuda.makeGraphedCallables(layer, [sample]);
  const x = torch.randn([2, 4], { ...on, requiresGrad: true });
  const y = graphed(x);
  same(y.sub(layer(x)).abs().max().item(), 0, 1e-6);
  y.sum().backward();
  const want = torch.autograd.grad(layer(x).sum(), [x, layer.weight]);
  same(x.grad.sub(want[0]).abs().max().item(), 0, 1e-6);
  same(layer.weight.grad.sub(want[1]).abs().max().item(), 0, 1e-5);
});

check("out of memory is told in full and survived (G08)", () => {
  free();
  const [, total] = cuda.memGetInfo();
  cuda.setPerProcessMemoryFraction((cuda.memoryReserved() + 4 * GiB) / total);
  const depth = () => {
    const kept = [];
    try {
      for (;;) kept.push(torch.zeros([256 * MiB], { ...on, dtype: torch.uint8 }));
    } catch (error) {
      same(error instanceof torch.OutOfMemoryError, true);
      same(/tried to allocate .* allocated, .* reserved, .* free of/.test(error.message), true);
    }
    const n = kept.length;
    for (const t of kept) t.dispose();
    return n;
  };
  const first = depth();
  same(first > 10, true);
  same(depth(), first);
  throws(() => torch.empty([1e12], on), torch.OutOfMemoryError, /tried to allocate/);
  cuda.setPerProcessMemoryFraction(1);
  free();
});

check("garbage is collected without dispose", () => {
  free();
  const before = cuda.memoryReserved();
  for (let i = 0; i < 20000; i++) torch.empty([MiB], { ...on, dtype: torch.uint8 });
  const grown = cuda.memoryReserved() - before;
  console.log(`    reserved grew by ${(grown / MiB).toFixed(0)} MiB`);
  same(grown <= 1100 * MiB, true);
});

check("private pools", () => {
  const pool = new cuda.MemPool();
  const x = cuda.useMemPool(pool, () => torch.ones([MiB], on));
  same(pool.snapshot().length, 1);
  same(x.sum().item(), MiB);
});

check("a bad index names the operator and spares other memory", () => {
  const table = torch.ones([4, 2], on);
  throws(
    () =>
      torch.nn.functional
        .embedding(torch.tensor([9], { ...on, dtype: torch.int64 }), table)
        .sum()
        .item(),
    torch.IndexError,
    /embedding/,
  );
  same(table.sum().item(), 8);
});

check("switches reach the libraries", () => {
  const a = torch.randn([512, 512], on);
  const exact = a.double().matmul(a.double());
  const error = () => a.matmul(a).double().sub(exact).abs().max().item();
  const full = error();
  torch.backends.cuda.matmul.allowTf32 = true;
  const fast = error();
  torch.backends.cuda.matmul.allowTf32 = false;
  same(fast > 4 * full, true);
});

// Relative errors of a convolution and its gradients beside float64 on the CPU.
function convolutionErrors(dtype, memoryFormat) {
  const { conv2d } = torch.nn.functional;
  const given = [torch.randn([8, 16, 20, 21]), torch.randn([32, 16, 3, 3]), torch.randn([32])];
  const run = (change) => {
    const leaves = given.map((t) => change(t).detach().requiresGrad_());
    const y = conv2d(...leaves, { stride: 2, padding: 1 });
    y.square().sum().backward();
    return [y, ...leaves.map((t) => t.grad)].map((t) => t.detach().cpu().double());
  };
  const placed = (t) => (t.dim() === 4 ? t.to({ memoryFormat }) : t);
  const exact = run((t) => t.to(dtype).double());
  return run((t) => placed(t.to("cuda").to(dtype))).map((t, i) =>
    t.sub(exact[i]).norm().div(exact[i].norm()).item(),
  );
}

check("convolutions obey the switches in every dtype and layout", () => {
  const { cudnn } = torch.backends;
  const bounds = [
    [torch.float32, 1e-5],
    [torch.float64, 1e-12],
    [torch.float16, 5e-3],
    [torch.bfloat16, 3e-2],
  ];
  cudnn.allowTf32 = false;
  for (const format of [torch.contiguousFormat, torch.channelsLast])
    for (const choice of ["none", "deterministic", "benchmark"])
      for (const [dtype, bound] of bounds) {
        if (choice !== "none") cudnn[choice] = true;
        const worst = Math.max(...convolutionErrors(dtype, format));
        if (choice !== "none") cudnn[choice] = false;
        if (!(worst < bound)) throw new Error(`${dtype}, ${choice}, layout ${format}: ${worst}`);
      }
  cudnn.allowTf32 = true;
  same(Math.max(...convolutionErrors(torch.float32, torch.contiguousFormat)) < 5e-3, true);
});

check("convolutions of new shapes can be captured", () => {
  const x = torch.randn([3, 5, 17, 19], on);
  const weight = torch.randn([7, 5, 3, 3], { ...on, requiresGrad: true });
  const y = torch.empty([3, 7, 15, 17], on);
  const g = cuda.graph(() => {
    const made = torch.nn.functional.conv2d(x, weight);
    y.copy_(made.detach());
    weight.grad = null;
    made.sum().backward();
  });
  x.mul_(2);
  g.replay();
  const wanted = torch.nn.functional.conv2d(x.cpu(), weight.detach().cpu());
  same(y.cpu().sub(wanted).abs().max().item() < 0.1, true);
});

check("tensors of a device that is not current (G07)", () => {
  if (cuda.deviceCount() < 2) return console.log("    only one GPU: not run");
  const x = torch.ones([3], { device: "cuda:1" });
  same(x.mul(2).sum().item(), 6);
  same(cuda.currentDevice(), 0);
  same(x.to("cuda:0").add(1).tolist(), [2, 2, 2]);
  throws(() => x.add(torch.ones([3], on)), torch.DeviceError, /cuda:1 and cuda:0/);
});

check("every device has its own memory, libraries, numbers and streams", () => {
  if (cuda.deviceCount() < 2) return console.log("    only one GPU: not run");
  const second = { device: "cuda:1" };
  const [before, first] = [cuda.memoryAllocated(1), cuda.memoryAllocated(0)];
  const x = torch.randn([256, 256], second);
  same(cuda.memoryAllocated(1) - before, 4 * 256 * 256);
  same(cuda.memoryAllocated(0), first);
  // Products, convolutions, sorting, factorisations and reductions, each beside the CPU.
  const host = x.cpu();
  const images = host.reshape([4, 4, 64, 64]);
  const weight = torch.randn([8, 4, 3, 3]);
  const { conv2d } = torch.nn.functional;
  const pairs = [
    [x.matmul(x), host.matmul(host)],
    [conv2d(images.to("cuda:1"), weight.to("cuda:1")), conv2d(images, weight)],
    [x.sort(0)[0], host.sort(0)[0]],
    [torch.linalg.inv(x), torch.linalg.inv(host)],
    [x.softmax(1).sum(0), host.softmax(1).sum(0)],
  ];
  for (const [there, here] of pairs) {
    same(there.device.toString(), "cuda:1");
    const scale = here.abs().max().item();
    same(there.cpu().sub(here).abs().max().item() <= 1e-4 * scale, true);
  }
  torch.manualSeed(3);
  const numbers = torch.rand([5], second).tolist();
  same(torch.rand([5], on).tolist(), numbers);
  const side = new cuda.Stream({ device: "cuda:1" });
  const y = cuda.withStream(side, () => x.mul(2));
  side.synchronize();
  same(y.sub(x).sub(x).abs().max().item(), 0);
  same(cuda.currentDevice(), 0);
});

check("training across two devices", () => {
  if (cuda.deviceCount() < 2) return console.log("    only one GPU: not run");
  torch.manualSeed(0);
  const front = new torch.nn.Linear(8, 16).to("cuda:0");
  const back = new torch.nn.Linear(16, 1).to("cuda:1");
  const parameters = [...front.parameters(), ...back.parameters()];
  const optimizer = new torch.optim.Adam(parameters, { lr: 0.01 });
  const x = torch.randn([64, 8], on);
  const target = x.sum(1, true).to("cuda:1");
  let [begin, end] = [0, 0];
  for (let step = 0; step < 200; step++) {
    optimizer.zeroGrad();
    const loss = torch.nn.functional.mseLoss(back(front(x).to("cuda:1")), target);
    loss.backward();
    optimizer.step();
    end = loss.item();
    if (step === 0) begin = end;
  }
  same(end < begin / 20, true);
  same(front.weight.grad.device.toString(), "cuda:0");
});

let failed = 0;
for (const [name, fn] of checks) {
  try {
    await fn();
    console.log(`ok    ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAIL  ${name}: ${error?.stack ?? error}`);
  }
}
console.log(`${checks.length - failed}/${checks.length} passed`);
process.exitCode = failed ? 1 : 0;
