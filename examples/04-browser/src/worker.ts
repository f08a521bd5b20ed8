// The worker: trains in short turns, and between two of them answers what the page asks.
import * as torch from "cresset";
import { imageBytes, type Digits } from "./digits.js";
import { fetchDigits } from "./fetch_digits.js";
import type { FromWorker, Sample, ToWorker } from "./protocol.js";
import { Trainer } from "./trainer.js";

const reportEvery = 120; // milliseconds
const testEvery = 50; // training steps
const firstTests = [10, 20, 35];
/** Training stops by itself after this many passes over the images; Train adds as many again. */
const epochsPerRun = 5;

interface WorkerScope {
  postMessage(message: FromWorker): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
}
const scope = globalThis as unknown as WorkerScope;
const send = (message: FromWorker) => scope.postMessage(message);

/** Resolves when messages that were waiting have been handled. */
const nextTurn = (() => {
  const { port1, port2 } = new MessageChannel();
  let resume = () => {};
  port1.onmessage = () => resume();
  return () =>
    new Promise<void>((resolve) => {
      resume = resolve;
      port2.postMessage(null);
    });
})();

/** Collects losses and times, and sends them a few times a second. */
class Reporter {
  private losses: number[] = [];
  private firstStep = 1;
  private images = 0;
  private busy = 0;
  private since = performance.now();

  add(step: number, loss: number, images: number, milliseconds: number): void {
    if (this.losses.length === 0) this.firstStep = step;
    this.losses.push(loss);
    this.images += images;
    this.busy += milliseconds;
  }

  restart(): void {
    this.losses = [];
    this.images = this.busy = 0;
    this.since = performance.now();
  }

  sendIfDue(epoch: number, force = false): void {
    const elapsed = performance.now() - this.since;
    if (this.losses.length === 0 || (elapsed < reportEvery && !force)) return;
    const pace = {
      imagesPerSecond: (1000 * this.images) / this.busy,
      stepMilliseconds: this.busy / this.losses.length,
      heapBytes: torch.memory.stats().heapBytes,
    };
    const { firstStep } = this;
    send({ type: "steps", firstStep, losses: Float32Array.from(this.losses), epoch, pace });
    this.restart();
  }
}

/** Runs the training: turn by turn, until it is paused or its epochs are over. */
class Loop {
  private running = false;
  private active = false;
  private lastEpoch = epochsPerRun;
  private test: Generator<void, number> | null = null;
  private readonly reporter = new Reporter();

  constructor(private readonly trainer: Trainer) {}

  async start(): Promise<void> {
    this.running = true;
    if (this.active) return;
    this.active = true;
    this.reporter.restart();
    try {
      while (this.running) {
        this.turn();
        await nextTurn();
      }
    } finally {
      this.active = false;
    }
  }

  pause(): void {
    this.running = false;
    this.reporter.sendIfDue(this.trainer.epoch, true);
    send({ type: "paused", step: this.trainer.step, finished: false });
  }

  reset(): void {
    this.running = false;
    this.test = null;
    this.lastEpoch = epochsPerRun;
    this.reporter.restart();
    this.trainer.reset();
    send({ type: "untrained" });
  }

  /** A slice of a test that is under way, or else one training step. */
  private turn(): void {
    if (this.test !== null) this.continueTest();
    else if (this.trainer.epochIsOver && this.trainer.epoch >= this.lastEpoch) this.finish();
    else this.trainStep();
    this.reporter.sendIfDue(this.trainer.epoch);
  }

  private trainStep(): void {
    const { trainer } = this;
    const begin = performance.now();
    const images = trainer.nextBatchSize;
    const loss = trainer.trainStep();
    const { step } = trainer;
    this.reporter.add(step, loss, images, performance.now() - begin);
    if (!Number.isFinite(loss)) {
      throw new Error(
        `the loss became ${loss} at step ${step}; choose a lower learning rate and start again`,
      );
    }
    const due = step % testEvery === 0 || firstTests.includes(step) || trainer.epochIsOver;
    if (due) this.test = trainer.evaluate();
  }

  private continueTest(): void {
    const { done, value } = this.test!.next();
    if (!done) return;
    this.test = null;
    send({ type: "accuracy", step: this.trainer.step, share: value });
  }

  private finish(): void {
    this.running = false;
    this.lastEpoch += epochsPerRun;
    this.reporter.sendIfDue(this.trainer.epoch, true);
    send({ type: "paused", step: this.trainer.step, finished: true });
  }
}

/** Two test images of each digit, all zeros first. */
function samplesOf({ images, labels, count }: Digits): Sample[] {
  const samples: Sample[] = [];
  for (let digit = 0; digit < 10; digit++) {
    for (let i = 0, found = 0; i < count && found < 2; i++) {
      if (labels[i] !== digit) continue;
      found++;
      samples.push({ digit, pixels: images.slice(i * imageBytes, (i + 1) * imageBytes) });
    }
  }
  return samples;
}

let trainer: Trainer | null = null;
let loop: Loop | null = null;

async function load({ dataUrl, seed, threads, settings }: ToWorker & { type: "load" }) {
  const digits = fetchDigits(dataUrl, (share) => send({ type: "loading", share }));
  const [{ train, test }] = await Promise.all([digits, torch.init(threads > 0 ? { threads } : {})]);
  trainer = new Trainer({ train, test }, seed, settings);
  loop = new Loop(trainer);
  send({
    type: "ready",
    threads: torch.getNumThreads(),
    heapBytes: torch.memory.stats().heapBytes,
    trainCount: train.count,
    testCount: test.count,
    samples: samplesOf(test),
  });
}

async function handle(message: ToWorker): Promise<void> {
  switch (message.type) {
    case "load":
      return load(message);
    case "train":
      return loop?.start();
    case "pause":
      return loop?.pause();
    case "reset":
      return loop?.reset();
    case "change":
      return trainer?.change(message.settings);
    case "predict":
      if (trainer === null) return;
      send({
        type: "prediction",
        id: message.id,
        probabilities: trainer.predict(message.pixels),
      });
  }
}

scope.onmessage = ({ data }) => {
  handle(data).catch((error: unknown) => {
    send({ type: "failed", message: error instanceof Error ? error.message : String(error) });
  });
};
