// The WebAssembly build in Chromium beside tfjs-wasm, and how much a page has to load.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { rolldown } from "rolldown";
import { launch, serve } from "../package/browser.js";
import type { Result } from "./benchmarks.js";
import { npmPeers } from "./library.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const rounds = 7;

/** What a page answers: milliseconds until ready, and for one product of two n x n matrices. */
interface Times {
  init: number;
  product: number;
}

// Runs in the page: the median of 21 products after half a second of them, when V8 has optimised.
const timing = `
  while (performance.now() < ready + 500) multiply();
  const times = [];
  for (let i = 0; i < 21; i++) {
    const begin = performance.now();
    multiply();
    times.push(performance.now() - begin);
  }
  return { init: ready - start, product: times.sort((a, b) => a - b)[10] };`;

const cresset = `(async () => {
  const torch = await import("/dist/web.js");
  const start = performance.now();
  await torch.init({ threads: 1 });
  const ready = performance.now();
  const [a, b] = [torch.randn([512, 512]), torch.randn([512, 512])];
  const multiply = () => torch.tidy(() => void a.matmul(b));
  ${timing}
})()`;

const peers = "/test/bench/peers/node_modules/@tensorflow";
const tfjs = `(async () => {
  const load = (src) => new Promise((onload, onerror) => {
    const script = Object.assign(document.createElement("script"), { src, onload, onerror });
    document.head.append(script);
  });
  await load("${peers}/tfjs/dist/tf.min.js");
  await load("${peers}/tfjs-backend-wasm/dist/tf-backend-wasm.min.js");
  tf.wasm.setWasmPaths("${peers}/tfjs-backend-wasm/dist/");
  const start = performance.now();
  await tf.setBackend("wasm");
  await tf.ready();
  const ready = performance.now();
  const [a, b] = [tf.randomNormal([512, 512]), tf.randomNormal([512, 512])];
  const multiply = () => tf.matMul(a, b).dispose();
  ${timing}
})()`;

function median(values: number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}

/** Both libraries in turn, each round in a fresh page; served without threads for both. */
export async function runChromium(): Promise<Result[]> {
  const reason = npmPeers();
  if (reason) console.log(`tfjs-wasm: ${reason}`);
  const browser = await launch();
  const [server, address] = await serve(root, false);
  const ask = async (script: string): Promise<Times> => {
    const context = await browser.newContext();
    const page: Page = await context.newPage();
    await page.goto(`${address}/test/bench/page.html`);
    const times = (await page.evaluate(script)) as Times;
    await context.close();
    return times;
  };
  try {
    const [ours, theirs]: [Times[], Times[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      ours.push(await ask(cresset));
      if (!reason) theirs.push(await ask(tfjs));
    }
    const row = (name: string, of: (times: Times) => number): Result => {
      const value = median(ours.map(of));
      if (theirs.length === 0) return { name, unit: "ms", value };
      const peerValue = median(theirs.map(of));
      return { name, unit: "ms", value, peer: "tfjs-wasm", peerValue, ratio: peerValue / value };
    };
    return [
      row("Chromium: matmul.512", ({ product }) => product),
      row("Chromium: init", ({ init }) => init),
    ];
  } finally {
    await browser.close();
    server.close();
    server.closeAllConnections();
  }
}

/** The most that a page may load, compressed, in kilobytes. */
const mostKilobytes = 2500;

/** What a page loads without threads: the module, and the scripts in one minified bundle. */
export async function wasmSizes(): Promise<Result[]> {
  const bundle = await rolldown({ input: `${root}dist/web.js`, platform: "browser" });
  const { output } = await bundle.generate({ minify: true });
  await bundle.close();
  const kilobytes = (bytes: string | Uint8Array) => gzipSync(bytes, { level: 9 }).length / 1000;
  const module = kilobytes(readFileSync(`${root}dist/wasm/cresset.wasm`));
  const scripts = kilobytes(output[0].code);
  return [
    { name: "size: cresset.wasm", unit: "kB gzip", value: module },
    { name: "size: scripts", unit: "kB gzip", value: scripts },
    { name: "size: both", unit: "kB gzip", value: module + scripts, limit: mostKilobytes },
    ...largestParts(),
  ];
}

const shownParts = 12;
const [codeSection, dataSection] = [10, 11];

/**
 * Bytes of code and data in an object file: a WebAssembly module of its own, or LLVM's bitcode,
 * which counts as a whole because the linker compiles it.
 */
function contentBytes(object: Uint8Array): number {
  if (String.fromCharCode(...object.subarray(0, 4)) !== "\0asm") return object.length;
  let [at, total] = [8, 0];
  while (at < object.length) {
    const section = object[at++]!;
    let size = 0;
    for (let shift = 0, byte = 0x80; byte & 0x80; shift += 7) {
      byte = object[at++]!;
      size |= (byte & 0x7f) << shift;
    }
    if (section === codeSection || section === dataSection) total += size;
    at += size;
  }
  return total;
}

/** What takes the space: the largest object files, before the linker left out what is unused. */
function largestParts(): Result[] {
  const folder = `${root}build/wasm/CMakeFiles/cresset_core.dir/core`;
  if (!existsSync(folder)) return [];
  const objects = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const sizes = objects
    .filter((name) => name.endsWith(".o"))
    .map((name) => ({ name, bytes: contentBytes(readFileSync(`${folder}/${name}`)) }))
    .sort((a, b) => b.bytes - a.bytes);
  const rest = sizes.slice(shownParts).reduce((sum, { bytes }) => sum + bytes, 0);
  const parts = [...sizes.slice(0, shownParts), { name: "all other files.o", bytes: rest }];
  return parts.map(({ name, bytes }) => ({
    name: `object: ${name.replace(/\.o$/, "")}`,
    unit: "kB",
    value: bytes / 1000,
  }));
}
