// The progress display, on a terminal and elsewhere, with a clock that the tests turn.
import { expect, test } from "vitest";
import { Progress } from "../../js/src/progress.js";

function trial(isTTY: boolean, total: number) {
  let now = 0;
  const written: string[] = [];
  const stream = { isTTY, columns: 100, write: (text: string) => written.push(text) };
  const options = { label: "epoch 1/5", unit: "images", stream, clock: () => now };
  const wait = (seconds: number) => (now += seconds * 1000);
  return { progress: new Progress(total, options), written, wait };
}

test("elsewhere it writes a line every few seconds and one at the end", () => {
  const { progress, written, wait } = trial(false, 60_000);
  for (let i = 0; i < 12; i++) {
    wait(1);
    progress.advance(5000, { loss: 1 / (i + 1) });
  }
  progress.finish({ accuracy: 0.9 });
  expect(written).toEqual([
    "epoch 1/5   41%  5,000 images/s  loss 0.2000  7.0 s left\n",
    "epoch 1/5   83%  5,000 images/s  loss 0.1000  2.0 s left\n",
    "epoch 1/5  5,000 images/s  loss 0.0833  accuracy 0.9000  in 12 s\n",
  ]);
});

test("on a terminal it redraws one line, at most ten times a second", () => {
  const { progress, written, wait } = trial(true, 100);
  for (let i = 0; i < 100; i++) {
    wait(0.01);
    progress.advance(1);
  }
  progress.finish();
  expect(written.length).toBeGreaterThan(5);
  expect(written.length).toBeLessThan(14);
  const bar = "█".repeat(12) + "░".repeat(12);
  const half = `\r\u001b[Kepoch 1/5  ${bar}   50%  100 images/s  0.5 s left`;
  expect(written.some((text) => text === half)).toBe(true);
  expect(written.at(-1)).toBe("\n");
  expect(written.slice(0, -1).every((text) => text.startsWith("\r") && !text.includes("\n"))).toBe(
    true,
  );
});

test("a value given as a function is asked for only when a line is drawn", () => {
  const { progress, wait } = trial(false, 1000);
  let calls = 0;
  for (let i = 0; i < 1000; i++) {
    wait(0.01);
    progress.advance(1, { loss: () => ++calls });
  }
  expect(calls).toBe(2);
});

test("numbers and times stay readable at any size", () => {
  const { progress, written, wait } = trial(false, 10);
  wait(4000);
  progress.advance(1, { tiny: 1.5e-7, large: 123.456, zero: 0, lost: NaN });
  expect(written).toEqual([
    "epoch 1/5   10%  0.00025 images/s  " +
      "tiny 1.50e-7  large 123.5  zero 0.0000  lost NaN  10 h 0 min left\n",
  ]);
  wait(-3900);
  progress.finish();
  expect(written.at(-1)).toMatch(/in 1 min 40 s\n$/);
});
