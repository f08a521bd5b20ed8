// What the examples share: the MNIST reader and the chart page.
import { expect, test } from "vitest";
import { chartPage, ticks } from "../../examples/lib/chart.js";
import { loadMnist, parseIdx } from "../../examples/lib/mnist.js";

test("MNIST is complete", () => {
  const { train, test } = loadMnist();
  expect([train.count, train.rows, train.columns]).toEqual([60_000, 28, 28]);
  expect(train.images.length).toBe(60_000 * 784);
  expect(train.labels.length).toBe(60_000);
  expect([...train.labels.subarray(0, 10)]).toEqual([5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
  expect(test.count).toBe(10_000);
  expect([...test.labels.subarray(0, 10)]).toEqual([7, 2, 1, 0, 4, 1, 4, 9, 5, 9]);
  // The mean and deviation by which MNIST is usually normalised.
  const mean = train.images.reduce((a, b) => a + b, 0) / train.images.length / 255;
  expect(mean).toBeCloseTo(0.1307, 4);
});

test("an idx file of another kind or length is refused", () => {
  expect(() => parseIdx(Uint8Array.of(1, 2, 3, 4))).toThrow(/idx file/);
  expect(() => parseIdx(Uint8Array.of(0, 0, 13, 1, 0, 0, 0, 0))).toThrow(/unsigned bytes/);
  expect(() => parseIdx(Uint8Array.of(0, 0, 8, 1, 0, 0, 0, 2, 1))).toThrow(/expected 10 bytes/);
});

const chart = {
  title: "Loss <MNIST>",
  xLabel: "step",
  yLabel: "loss (nats)",
  series: [
    { name: "train", points: [[0, 2.3] as const, [100, 0.5] as const, [200, 0.2] as const] },
    { name: "test", points: [[100, NaN] as const, [200, 0.3] as const] },
  ],
};

test("a chart is a page that needs nothing else", () => {
  const page = chartPage(chart);
  expect(page).not.toMatch(/(src|href)=|@import|url\(|NaN[^<]*"\/>/);
  expect(page.replaceAll("http://www.w3.org/2000/svg", "")).not.toMatch(/https?:/);
  expect(page).toContain("Loss &lt;MNIST&gt;");
  expect(page).not.toContain("<MNIST>");
  expect(page).toContain('role="img"');
  expect(page).toContain("loss (nats) over step: train ends at 0.2, test ends at 0.3.");
  expect(page).toContain("prefers-color-scheme: dark");
});

test("curves lie inside the plot and are interrupted where there is no value", () => {
  const paths = [...chartPage(chart).matchAll(/<path class="curve s\d" d="([^"]*)"/g)];
  expect(paths.map((path) => path[1]!.match(/[ML]/g)!.join(""))).toEqual(["MLL", "M"]);
  const numbers = paths[0]![1]!.split(/[ML ]/).filter(Boolean).map(Number);
  expect(Math.min(...numbers)).toBeGreaterThanOrEqual(24);
  expect(Math.max(...numbers)).toBeLessThanOrEqual(760 - 24);
});

test("ticks are round numbers within the range", () => {
  expect(ticks(0, 2.392, 5)).toEqual([0, 0.5, 1, 1.5, 2]);
  expect(ticks(0, 938, 8)).toEqual([0, 200, 400, 600, 800]);
  expect(ticks(3, 3, 5)).toEqual([3]);
  expect(chartPage({ ...chart, series: [{ name: "none", points: [] }] })).toContain("is empty");
});
