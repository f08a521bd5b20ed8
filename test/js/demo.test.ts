// The parts of the browser demo that need no browser: its data file, curves, axes and drawings.
import { expect, test } from "vitest";
import { Curve } from "../../examples/04-browser/src/curve.js";
import { packDigits, unpackDigits } from "../../examples/04-browser/src/digits.js";
import { normalise } from "../../examples/04-browser/src/normalise.js";
import { linearAxis, logAxis } from "../../examples/04-browser/src/scale.js";

test("the file of digits comes back as it was packed; a damaged one is refused", () => {
  const part = (count: number, first: number) => ({
    images: Uint8Array.from({ length: count * 784 }, (_, i) => (first + i) % 256),
    labels: Uint8Array.from({ length: count }, (_, i) => (first + i) % 10),
    count,
  });
  const digits = { train: part(3, 1), test: part(2, 5) };
  const file = packDigits(digits);
  expect(unpackDigits(file)).toEqual(digits);
  expect(() => unpackDigits(file.subarray(0, 100))).toThrow(/damaged: it has 100 bytes/);
  expect(() => unpackDigits(file.subarray(0, 5))).toThrow(/damaged: it has only 5 bytes/);
});

test("a curve keeps its extremes and its end in bounded memory", () => {
  const curve = new Curve(0.9);
  for (let x = 1; x <= 100_000; x++) curve.add(x, x === 5000 ? 9 : x % 2);
  expect(curve.buckets.length).toBeLessThanOrEqual(800);
  expect(curve.buckets.at(-1)!.x).toBe(100_000);
  expect(Math.max(...curve.buckets.map(({ high }) => high))).toBe(9);
  expect(Math.min(...curve.buckets.map(({ low }) => low))).toBe(0);
  expect(curve.buckets.at(-1)!.smooth).toBeCloseTo(0.5, 1);
  expect(curve.nearest(1e9)).toBe(curve.buckets.at(-1));
  expect(curve.buckets.every(({ x }, i) => i === 0 || x > curve.buckets[i - 1]!.x)).toBe(true);
  curve.clear();
  curve.add(1, 3);
  expect(curve.buckets).toEqual([{ x: 1, low: 3, high: 3, smooth: expect.closeTo(3, 9) }]);
});

test("axes have round ticks within their range", () => {
  expect(linearAxis(0, 1, 5).ticks).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
  expect(linearAxis(0, 313, 4).ticks).toEqual([0, 100, 200, 300]);
  expect(linearAxis(0, 200, 4).place(50)).toBe(0.25);
  expect(logAxis(0.14, 2.5).ticks).toEqual([0.1, 0.2, 0.5, 1, 2, 5]);
  expect(logAxis(0.0004, 2.5).ticks).toEqual([0.001, 0.01, 0.1, 1]);
  const axis = logAxis(0.1, 10);
  expect([axis.place(0.1), axis.place(1), axis.place(10)].map((v) => v.toFixed(6))).toEqual([
    "0.000000",
    "0.500000",
    "1.000000",
  ]);
});

/** A drawing of 140 × 140 pixels whose ink fills a rectangle. */
function rectangle(left: number, top: number, width: number, height: number): Uint8ClampedArray {
  const rgba = new Uint8ClampedArray(4 * 140 * 140);
  for (let y = top; y < top + height; y++) {
    for (let x = left; x < left + width; x++) rgba[4 * (y * 140 + x) + 3] = 255;
  }
  return rgba;
}

test("a drawing is scaled to 20 pixels and centred, wherever and however large it is", () => {
  for (const [left, top, size] of [
    [10, 20, 50],
    [80, 3, 50],
    [20, 20, 100],
  ] as const) {
    const pixels = normalise(rectangle(left, top, size / 2, size), 140, 140)!;
    const inked = [...pixels.keys()].filter((i) => pixels[i]! > 127);
    const rows = inked.map((i) => Math.floor(i / 28));
    const columns = inked.map((i) => i % 28);
    expect([Math.min(...rows), Math.max(...rows)]).toEqual([4, 23]);
    expect([Math.min(...columns), Math.max(...columns)]).toEqual([9, 18]);
  }
});

test("an empty drawing is no digit, and a dot stays a dot", () => {
  expect(normalise(new Uint8ClampedArray(4 * 140 * 140), 140, 140)).toBeNull();
  const dot = normalise(rectangle(70, 70, 4, 4), 140, 140)!;
  expect(dot.filter((value) => value > 127).length).toBeLessThan(40);
});
