// Trains a small network for many steps in one task and notes how much memory it takes.
import * as torch from "cresset";
import { nn, optim } from "cresset";

export interface Steadiness {
  threads: number;
  steps: number;
  milliseconds: number;
  /** Bytes of the WASM heap and live tensors: after 100 steps, then after each thousandth. */
  heap: number[];
  tensors: number[];
  firstLoss: number;
  lastLoss: number;
}

const steps = 10_000;

async function run(): Promise<Steadiness> {
  await torch.init();
  torch.manualSeed(0);
  const points = torch.randn([64, 2]);
  const distance = points.mul(points).sum(1, true).sqrt();
  const model = new nn.Sequential(new nn.Linear(2, 16), new nn.Tanh(), new nn.Linear(16, 1));
  const optimizer = new optim.Adam(model.parameters(), { lr: 0.01 });
  const trainStep = () =>
    torch.tidy(() => {
      optimizer.zeroGrad();
      const loss = nn.functional.mseLoss(model(points), distance);
      loss.backward();
      optimizer.step();
      return Number(loss.item());
    });
  const heap: number[] = [];
  const tensors: number[] = [];
  const losses: number[] = [];
  const begin = performance.now();
  for (let step = 1; step <= steps; step++) {
    const loss = trainStep();
    if (step !== 1 && step !== 100 && step % 1000 !== 0) continue;
    losses.push(loss);
    if (step === 1) continue;
    heap.push(torch.memory.stats().heapBytes);
    tensors.push(torch.memory.stats().tensors);
  }
  return {
    threads: torch.getNumThreads(),
    steps,
    milliseconds: performance.now() - begin,
    heap,
    tensors,
    firstLoss: losses[0]!,
    lastLoss: losses.at(-1)!,
  };
}

const send = (answer: Steadiness | { error: string }) => {
  (globalThis as unknown as { postMessage(message: unknown): void }).postMessage(answer);
};
run().then(send, (error: unknown) => send({ error: String(error) }));
