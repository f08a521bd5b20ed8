// What the two charts show: the training loss and the test accuracy.
import { percent } from "./bars.js";
import type { ChartOptions } from "./chart.js";
import { linearAxis, logAxis } from "./scale.js";

const stepAxis: ChartOptions["xAxis"] = (last, width) => {
  return linearAxis(0, Math.max(last, 100), Math.max(2, Math.floor(width / 75)));
};

export const lossChart: ChartOptions = {
  name: "training loss",
  yLabel: "loss (nats, log scale)",
  xLabel: "training step",
  color: "--loss",
  smoothing: 0.9,
  xAxis: stepAxis,
  yAxis(buckets) {
    const lowest = Math.min(0.2, ...buckets.map(({ smooth }) => smooth));
    const highest = Math.max(2.5, ...buckets.map(({ smooth }) => smooth));
    return logAxis(Math.max(1e-6, lowest * 0.7), highest);
  },
  format: (value) => value.toPrecision(3),
  tick: (value) => String(value),
  summary(buckets) {
    const first = buckets[0]!.smooth.toPrecision(3);
    const { x, smooth } = buckets.at(-1)!;
    const steps = x.toLocaleString("en");
    return `From ${first} to ${smooth.toPrecision(3)} in ${steps} steps (smoothed).`;
  },
};

export const accuracyChart: ChartOptions = {
  name: "test accuracy",
  yLabel: "test images read rightly (%)",
  xLabel: "training step",
  color: "--accuracy",
  smoothing: 0,
  xAxis: stepAxis,
  yAxis: () => linearAxis(0, 1, 5),
  format: (value) => percent(value, 1),
  tick: (value) => String(Math.round(100 * value)),
  summary(buckets) {
    const { x, smooth } = buckets.at(-1)!;
    const best = Math.max(...buckets.map(({ high }) => high));
    const steps = x.toLocaleString("en");
    return `${percent(smooth, 1)} after ${steps} steps; the best was ${percent(best, 1)}.`;
  },
};
