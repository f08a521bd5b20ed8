// Builds the page of the memory test.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: here("."),
  base: "./",
  logLevel: "warn",
  resolve: { alias: { cresset: here("../../../dist/web.js") } },
  worker: { format: "es" },
  build: {
    outDir: here("../../../build/steady"),
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
  },
});
