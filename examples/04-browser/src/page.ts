// The page: controls, charts and numbers, fed by the worker's messages.
import trainerSource from "./trainer.ts?raw";
import { percent } from "./bars.js";
import { Chart } from "./chart.js";
import { accuracyChart, lossChart } from "./charts.js";
import { element } from "./dom.js";
import type { FromWorker, Settings, ToWorker } from "./protocol.js";
import { Reader } from "./reader.js";
import { Session } from "./session.js";
import { missingFeature } from "./support.js";

type State = "loading" | "ready" | "training" | "paused" | "failed";

const query = new URLSearchParams(location.search);
const numberOf = (name: string) => Number(query.get(name) ?? 0);
const whole = (value: number) => Math.round(value).toLocaleString("en");

const train = element<HTMLButtonElement>("train");
const reset = element<HTMLButtonElement>("reset");
const learningRate = element<HTMLSelectElement>("learning-rate");
const batchSize = element<HTMLSelectElement>("batch-size");
const status = element("status");
const problem = element("problem");
const spoken = element("spoken");

const numbers = {
  step: element("number-step"),
  epoch: element("number-epoch"),
  speed: element("number-speed"),
  time: element("number-time"),
  accuracy: element("number-accuracy"),
  threads: element("number-threads"),
  heap: element("number-heap"),
};

/** Speaks through a live region that is not seen. */
function announce(text: string): void {
  spoken.textContent = text;
}

const losses = new Chart(
  element<HTMLCanvasElement>("loss-chart"),
  element("loss-caption"),
  lossChart,
  announce,
);
const accuracies = new Chart(
  element<HTMLCanvasElement>("accuracy-chart"),
  element("accuracy-caption"),
  accuracyChart,
  announce,
);

let state: State = "loading";
let session: Session | null = null;

function send(message: ToWorker): boolean {
  if (session === null || state === "loading" || state === "failed") return false;
  session.send(message);
  return true;
}

const reader = new Reader(send, announce);

function settings(): Settings {
  return { learningRate: Number(learningRate.value), batchSize: Number(batchSize.value) };
}

function enter(next: State, text: string): void {
  state = next;
  document.body.dataset["state"] = next;
  status.textContent = text;
  train.textContent = next === "training" ? "Pause" : "Train";
  const idle = next === "loading" || next === "failed";
  for (const control of [train, reset]) control.disabled = idle;
}

function fail(reason: string): void {
  enter("failed", "Stopped.");
  element("problem-text").textContent = reason;
  problem.hidden = false;
}

function showNothingLearned(): void {
  losses.clear();
  accuracies.clear();
  numbers.step.textContent = "0";
  numbers.epoch.textContent = "0";
  for (const number of [numbers.speed, numbers.time, numbers.accuracy]) number.textContent = "–";
}

function showHeap(bytes: number): void {
  numbers.heap.textContent = (bytes / 2 ** 20).toFixed(0);
}

function onReady(message: FromWorker & { type: "ready" }): void {
  numbers.threads.textContent = String(message.threads);
  element("threads-hint").hidden = crossOriginIsolated;
  showHeap(message.heapBytes);
  reader.offer(message.samples);
  const digits = `${whole(message.trainCount)} digits to learn from`;
  enter("ready", `Ready: ${digits}, ${whole(message.testCount)} to be tested with.`);
  reader.restart();
}

function onSteps({ firstStep, losses: values, epoch, pace }: FromWorker & { type: "steps" }): void {
  values.forEach((loss, i) => losses.add(firstStep + i, loss));
  numbers.step.textContent = whole(firstStep + values.length - 1);
  numbers.epoch.textContent = String(epoch);
  numbers.speed.textContent = whole(pace.imagesPerSecond);
  numbers.time.textContent = pace.stepMilliseconds.toFixed(1);
  showHeap(pace.heapBytes);
  reader.refresh();
}

function onMessage(message: FromWorker): void {
  switch (message.type) {
    case "loading":
      status.textContent = `Loading the digits: ${percent(Math.floor(10 * message.share) / 10, 0)}`;
      return;
    case "ready":
      return onReady(message);
    case "steps":
      return onSteps(message);
    case "accuracy":
      accuracies.add(message.step, message.share);
      numbers.accuracy.textContent = percent(message.share, 1);
      return;
    case "prediction":
      return reader.answer(message.id, message.probabilities);
    case "paused": {
      const how = message.finished ? "Done: five passes over the digits," : "Paused after";
      enter("paused", `${how} ${whole(message.step)} steps. Train goes on from here.`);
      return;
    }
    case "untrained":
      showNothingLearned();
      enter("ready", "Untrained again. Train starts from the same random weights.");
      reader.refresh();
      return;
    case "failed":
      return fail(sentenceOf(message.message));
  }
}

function sentenceOf(text: string): string {
  const ended = /[.!?]$/.test(text) ? text : `${text}.`;
  return ended[0]!.toUpperCase() + ended.slice(1);
}

function start(): void {
  session?.end();
  problem.hidden = true;
  showNothingLearned();
  enter("loading", "Loading the digits and the network's arithmetic …");
  const missing = missingFeature();
  if (missing !== null) return fail(missing);
  session = new Session({ onMessage, onDeath: fail });
  session.send({
    type: "load",
    dataUrl: new URL("mnist.bin", document.baseURI).href,
    seed: numberOf("seed"),
    threads: numberOf("threads"),
    settings: settings(),
  });
}

train.addEventListener("click", () => {
  if (state === "training") return void send({ type: "pause" });
  if (send({ type: "train" })) enter("training", "Training …");
});
reset.addEventListener("click", () => send({ type: "reset" }));
for (const control of [learningRate, batchSize]) {
  control.addEventListener("change", () => send({ type: "change", settings: settings() }));
}
element("restart").addEventListener("click", start);
element("source").textContent = trainerSource;
start();
