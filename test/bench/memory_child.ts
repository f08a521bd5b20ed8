// One loop of the memory benchmarks: synchronous, nothing disposed; prints the peak and the start.
import * as torch from "cresset";
import type { MemoryReport } from "./memory.js";

/** Training steps of a small MLP, each with fresh inputs. */
function steps(): (count: number) => void {
  const { nn, optim } = torch;
  const model = new nn.Sequential(new nn.Linear(16, 32), new nn.ReLU(), new nn.Linear(32, 4));
  const optimizer = new optim.SGD(model.parameters(), { lr: 1e-3 });
  return (count) => {
    for (let i = 0; i < count; i++) {
      const [x, y] = [torch.randn([8, 16]), torch.randn([8, 4])];
      optimizer.zeroGrad();
      nn.functional.mseLoss(model(x), y).backward();
      optimizer.step();
    }
  };
}

/** Results of 1 MiB that nobody keeps. */
function garbage(): (count: number) => void {
  const x = torch.ones([256, 1024]);
  return (count) => {
    for (let i = 0; i < count; i++) x.add(1);
  };
}

const loops = {
  "steps.peak": { make: steps, warmUp: 100, count: 300_000 },
  "garbage.peak": { make: garbage, warmUp: 1, count: 100_000 },
};

const { make, warmUp, count } = loops[process.argv[2] as keyof typeof loops];
const loop = make();
const peakMiB = () => process.resourceUsage().maxRSS / 1024;
loop(warmUp);
const baseline = peakMiB();
loop(count);
const budget = torch.memory.stats().budget / 2 ** 20;
const report: MemoryReport = { baseline, peak: peakMiB(), budget };
console.log(JSON.stringify(report));
