// Builds the demo into a folder that any static server can serve, from any path.
import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";
import { loadMnist, type MnistPart } from "../lib/mnist.js";
import { imageBytes, packDigits, type Digits } from "./src/digits.js";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Every n-th image, so that `count` of them are spread over the whole part. */
function subset({ images, labels, count: all }: MnistPart, count: number): Digits {
  const chosen = {
    images: new Uint8Array(count * imageBytes),
    labels: new Uint8Array(count),
    count,
  };
  for (let i = 0; i < count; i++) {
    const from = Math.floor((i * all) / count);
    const image = images.subarray(from * imageBytes, (from + 1) * imageBytes);
    chosen.images.set(image, i * imageBytes);
    chosen.labels[i] = labels[from]!;
  }
  return chosen;
}

/** Adds the digits to the build: a third of MNIST to learn from, a fifth of its test images. */
function digits(): Plugin {
  return {
    name: "digits",
    generateBundle() {
      const { train, test } = loadMnist();
      const file = packDigits({ train: subset(train, 20_000), test: subset(test, 2_000) });
      const source = gzipSync(file, { level: 6 });
      this.emitFile({ type: "asset", fileName: "mnist.bin", source });
    },
  };
}

export default defineConfig({
  root: here("."),
  base: "./",
  plugins: [digits()],
  resolve: { alias: { cresset: here("../../dist/web.js") } },
  worker: { format: "es" },
  build: {
    outDir: here("../../build/demo"),
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    sourcemap: true,
  },
});
