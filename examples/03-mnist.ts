// MNIST: a small convolutional network learns to read digits, is saved, loaded and tested again.
//
// Options: --quick (a tenth of the images, one epoch), --epochs N, --out FOLDER.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import * as torch from "cresset";
import { nn, optim, Progress, type Tensor } from "cresset";
import { writeChart } from "./lib/chart.js";
import { loadMnist, type MnistPart } from "./lib/mnist.js";

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    epochs: { type: "string" },
    out: { type: "string", default: "build/examples" },
  },
});
const epochs = Number(options.epochs ?? (options.quick ? 1 : 3));
const batchSize = 100;

class Net extends nn.Module<[Tensor], Tensor> {
  features = new nn.Sequential(
    new nn.Conv2d(1, 16, 5),
    new nn.ReLU(),
    new nn.MaxPool2d(2), // [N, 16, 12, 12]
    new nn.Conv2d(16, 32, 5),
    new nn.ReLU(),
    new nn.MaxPool2d(2), // [N, 32, 4, 4]
    new nn.Flatten(),
  );
  classifier = new nn.Sequential(new nn.Linear(512, 128), new nn.ReLU(), new nn.Linear(128, 10));

  // images [N, 1, 28, 28] of bytes → a score for each digit [N, 10]
  forward(images: Tensor): Tensor {
    const scaled = images.float().div(255).sub(0.1307).div(0.3081);
    return this.classifier(this.features(scaled));
  }
}

function tensors(part: MnistPart, share: number): { images: Tensor; labels: Tensor } {
  const images = torch.tensor(part.images).reshape([part.count, 1, part.rows, part.columns]);
  const labels = torch.tensor(part.labels).to(torch.int64);
  const count = Math.floor(part.count * share);
  return { images: images.narrow(0, 0, count), labels: labels.narrow(0, 0, count) };
}

/** The share of the test images that the model reads rightly. */
function accuracy(model: Net, { images, labels }: { images: Tensor; labels: Tensor }): number {
  model.eval();
  let right = 0;
  torch.noGrad(() => {
    const count = images.shape[0]!;
    for (let start = 0; start < count; start += 1000) {
      const scores = model(images.narrow(0, start, Math.min(1000, count - start)));
      const found = scores.argmax(1);
      right += Number(
        found
          .eq(labels.narrow(0, start, found.shape[0]!))
          .sum()
          .item(),
      );
    }
  });
  model.train();
  return right / images.shape[0]!;
}

torch.manualSeed(0);
const files = loadMnist();
const train = tensors(files.train, options.quick ? 0.1 : 1);
const test = tensors(files.test, 1);
const count = train.images.shape[0]!;
const stepsPerEpoch = Math.ceil(count / batchSize);

const model = new Net();
console.log(model);
const optimizer = new optim.Adam(model.parameters());
const schedule = new optim.lrScheduler.OneCycleLR(optimizer, {
  maxLr: 0.004,
  totalSteps: epochs * stepsPerEpoch,
});

const curve: [number, number][] = [];
const begin = performance.now();
let step = 0;
for (let epoch = 1; epoch <= epochs; epoch++) {
  const progress = new Progress(count, { label: `epoch ${epoch}/${epochs}`, unit: "images" });
  const order = torch.randperm(count);
  let smoothed = NaN;
  for (let start = 0; start < count; start += batchSize) {
    const picked = order.narrow(0, start, Math.min(batchSize, count - start));
    optimizer.zeroGrad();
    const scores = model(train.images.indexSelect(0, picked));
    const loss = nn.functional.crossEntropy(scores, train.labels.indexSelect(0, picked));
    loss.backward();
    optimizer.step();
    schedule.step();
    const value = Number(loss.item());
    smoothed = Number.isNaN(smoothed) ? value : 0.95 * smoothed + 0.05 * value;
    if (++step % 10 === 0) curve.push([step, smoothed]);
    progress.advance(picked.shape[0]!, { loss: smoothed });
  }
  progress.finish();
}
const seconds = (performance.now() - begin) / 1000;
const percent = (share: number) => `${(100 * share).toFixed(2)} %`;
const reached = accuracy(model, test);
console.log(`trained in ${seconds.toFixed(1)} s; right on ${percent(reached)} of the test images`);

mkdirSync(options.out, { recursive: true });
const checkpoint = join(options.out, "mnist.safetensors");
torch.saveFile(model.stateDict(), checkpoint, { epochs: String(epochs) });
const page = join(options.out, "mnist.html");
writeChart(page, {
  title: "Training on MNIST",
  xLabel: "step",
  yLabel: "loss (nats, smoothed)",
  series: [{ name: "training loss", points: curve }],
});

const loaded = new Net();
loaded.loadStateDict(torch.loadFile(checkpoint));
const again = accuracy(loaded, test);
console.log(`loaded from ${checkpoint}: right on ${percent(again)}`);
console.log(`loss curve: ${page}`);
if (again !== reached) throw new Error("the loaded model differs from the trained one");
