// Builds the user's page with esbuild: node esbuild.mjs OUT.
import { cpSync } from "node:fs";
import { build } from "esbuild";

const out = process.argv[2];
await build({
  entryPoints: ["pages/page.mjs", "pages/page-worker.mjs"],
  bundle: true,
  minify: true,
  format: "esm",
  outdir: out,
  outExtension: { ".js": ".mjs" },
});
// esbuild leaves the addresses of the core's files as they are: beside the bundle.
cpSync("node_modules/cresset/dist/wasm", `${out}/wasm`, { recursive: true });
