// The network, its training step, its test and its use: what runs inside the worker.
import * as torch from "cresset";
import { nn, optim, type Tensor } from "cresset";
import type { DigitFile, Digits } from "./digits.js";
import type { Settings } from "./protocol.js";

/** Images per slice of a test, so that other work gets its turn in between. */
const sliceSize = 200;

/** A small convolutional network: images [N, 1, 28, 28] of bytes → a score per digit [N, 10]. */
class Net extends nn.Module<[Tensor], Tensor> {
  features = new nn.Sequential(
    new nn.Conv2d(1, 8, 5),
    new nn.ReLU(),
    new nn.MaxPool2d(2), // [N, 8, 12, 12]
    new nn.Conv2d(8, 16, 5),
    new nn.ReLU(),
    new nn.MaxPool2d(2), // [N, 16, 4, 4]
    new nn.Flatten(),
  );
  classifier = new nn.Sequential(new nn.Linear(256, 64), new nn.ReLU(), new nn.Linear(64, 10));

  forward(images: Tensor): Tensor {
    const scaled = images.float().div(255).sub(0.1307).div(0.3081);
    return this.classifier(this.features(scaled));
  }
}

interface Part {
  images: Tensor;
  labels: Tensor;
  count: number;
}

function toTensors({ images, labels, count }: Digits): Part {
  return torch.tidy(() => ({
    images: torch.tensor(images).reshape([count, 1, 28, 28]),
    labels: torch.tensor(labels).to(torch.int64),
    count,
  }));
}

/** Trains a network on the digits, one step at a time. */
export class Trainer {
  /** Training steps done. */
  step = 0;
  /** Passes over the training images begun. */
  epoch = 0;
  private readonly train: Part;
  private readonly test: Part;
  private model!: Net;
  private optimizer!: optim.Adam;
  private order: Tensor | null = null;
  private position = 0;

  constructor(
    digits: DigitFile,
    private readonly seed: number,
    private settings: Settings,
  ) {
    this.train = toTensors(digits.train);
    this.test = toTensors(digits.test);
    this.reset();
  }

  /** Forgets all that was learned; the same seed gives the same weights and order of images. */
  reset(): void {
    torch.manualSeed(this.seed);
    this.model = new Net();
    this.optimizer = new optim.Adam(this.model.parameters(), { lr: this.settings.learningRate });
    this.step = this.epoch = this.position = 0;
    this.order?.dispose();
    this.order = null;
  }

  change(settings: Settings): void {
    this.settings = settings;
    for (const group of this.optimizer.paramGroups) group.lr = settings.learningRate;
  }

  /** One training step; returns its loss. */
  trainStep(): number {
    const { images, labels } = this.train;
    if (this.order === null || this.position >= this.train.count) this.beginEpoch();
    const count = this.nextBatchSize;
    const loss = torch.tidy(() => {
      const batch = this.order!.narrow(0, this.position, count);
      this.optimizer.zeroGrad();
      const scores = this.model(images.indexSelect(0, batch));
      const loss = nn.functional.crossEntropy(scores, labels.indexSelect(0, batch));
      loss.backward();
      this.optimizer.step();
      return Number(loss.item());
    });
    this.position += count;
    this.step++;
    return loss;
  }

  /** Images in the next step; the last one of an epoch may be smaller. */
  get nextBatchSize(): number {
    const left = this.train.count - (this.epochIsOver ? 0 : this.position);
    return Math.min(this.settings.batchSize, left);
  }

  /** True when the next step begins a new pass over the training images. */
  get epochIsOver(): boolean {
    return this.order !== null && this.position >= this.train.count;
  }

  private beginEpoch(): void {
    this.order?.dispose();
    this.order = torch.randperm(this.train.count);
    this.position = 0;
    this.epoch++;
  }

  /** Tests a slice of the test images per turn; returns the share that was read rightly. */
  *evaluate(): Generator<void, number> {
    const { images, labels, count } = this.test;
    let right = 0;
    for (let start = 0; start < count; start += sliceSize) {
      const length = Math.min(sliceSize, count - start);
      right += this.inference(() => {
        const found = this.model(images.narrow(0, start, length)).argmax(1);
        return Number(
          found
            .eq(labels.narrow(0, start, length))
            .sum()
            .item(),
        );
      });
      yield;
    }
    return right / count;
  }

  /** The probability of each digit for an image of 28 × 28 bytes. */
  predict(pixels: Uint8Array): Float32Array {
    return this.inference(() => {
      const image = torch.tensor(pixels).reshape([1, 1, 28, 28]);
      return this.model(image).softmax(1).data() as Float32Array;
    });
  }

  private inference<T>(work: () => T): T {
    return torch.noGrad(() => torch.tidy(work));
  }
}
