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

/** Sizes of the products of two square matrices that a page times. */
const sizes = [512, 1024];

const peers = "/test/bench/peers/node_modules/@tensorflow";

// What runs in the pages: `torch` and `tf`, each from its start to its first result.
const cresset = `
  const torch = await import("/dist/web.js");
  const start = performance.now();
  await torch.init({ threads: 1 });
  torch.tensor([1]).add(1).item();
  const ready = performance.now() - start;`;

const tfjs = `
  const load = (src) => new Promise((onload, onerror) => {
    const script = Object.assign(document.createElement("script"), { src, onload, onerror });
    document.head.append(script);
  });
  await load("${peers}/tfjs/dist/tf.min.js");
  await load("${peers}/tfjs-backend-wasm/dist/tf-backend-wasm.min.js");
  tf.wasm.setWasmPaths("${peers}/tfjs-backend-wasm/dist/");
  const start = performance.now();
  await tf.setBackend("wasm");
  tf.tidy(() => tf.tensor([1]).add(1).dataSync());
  const ready = performance.now() - start;`;

const makers = {
  cresset: `async () => {
    ${cresset}
    return (n) => {
      const [a, b] = [torch.randn([n, n]), torch.randn([n, n])];
      return () => torch.tidy(() => void a.matmul(b));
    };
  }`,
  tfjs: `async () => {
    ${tfjs}
    return (n) => {
      const [a, b] = [tf.randomNormal([n, n]), tf.randomNormal([n, n])];
      return () => tf.matMul(a, b).dispose();
    };
  }`,
};

// For every size the median of each library's times, three calls in turn, after two seconds in
// which V8 optimises all that they call. A page must answer now and then, or it is taken for dead.
const products = (names: (keyof typeof makers)[]) => `(async () => {
  const makers = [];
  for (const make of [${names.map((name) => makers[name])}]) makers.push(await make());
  const medians = [];
  for (const n of [${sizes}]) {
    const calls = makers.map((make) => make(n));
    const times = calls.map(() => []);
    const end = performance.now() + 2000;
    for (let rounds = 0; rounds < 25; ) {
      calls.forEach((call, which) => {
        const begin = performance.now();
        for (let i = 0; i < 3; i++) call();
        times[which][rounds] = (performance.now() - begin) / 3;
      });
      if (performance.now() > end) rounds++;
      await new Promise((resolve) => setTimeout(resolve));
    }
    medians.push(times.map((list) => list.sort((a, b) => a - b)[list.length >> 1]));
  }
  return medians;
})()`;

function median(values: number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}

/** Both libraries in pages without threads; what they load is in the browser's cache. */
export async function runChromium(): Promise<Result[]> {
  const reason = npmPeers();
  if (reason) console.log(`tfjs-wasm: ${reason}`);
  const browser = await launch();
  const [server, address] = await serve(root, false);
  const context = await browser.newContext();
  const ask = async (script: string): Promise<unknown> => {
    const page: Page = await context.newPage();
    await page.goto(`${address}/test/bench/page.html`);
    const answer = await page.evaluate(script);
    await page.close();
    return answer;
  };
  const row = (name: string, value: number, peerValue: number | undefined): Result => {
    if (peerValue === undefined) return { name, unit: "ms", value };
    return { name, unit: "ms", value, peer: "tfjs-wasm", peerValue, ratio: peerValue / value };
  };
  try {
    const medians = (await ask(products(reason ? ["cresset"] : ["cresset", "tfjs"]))) as number[][];
    const [ours, theirs]: [number[], number[]] = [[], []];
    for (let round = 0; round < 7; round++) {
      ours.push((await ask(`(async () => {${cresset} return ready; })()`)) as number);
      if (reason) continue;
      theirs.push((await ask(`(async () => {${tfjs} return ready; })()`)) as number);
    }
    return [
      ...medians.map(([own, peer], i) => row(`Chromium: matmul.${sizes[i]}`, own!, peer)),
      row("Chromium: start", median(ours), reason ? undefined : median(theirs)),
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
