#!/usr/bin/env node
// `npx cresset doctor`: says which core would be used here, what was found, and why.
import { existsSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import * as os from "node:os";
import { fileURLToPath } from "node:url";
import type { Looked } from "./addon.js";
import type { HostReport } from "./host_node.js";
import { checkHost } from "./wasm/loader.js";

type Torch = typeof import("./index.js");

const usage = "usage: cresset doctor   says which core Cresset would use here, and why";

const words = (error: unknown) => (error instanceof Error ? error.message : String(error));
const mebibytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
const gibibytes = (bytes: number) => `${(bytes / 2 ** 30).toFixed(1)} GiB`;

function print(title: string, lines: string[]): void {
  lines.forEach((line, i) => console.log(`${(i === 0 ? title : "").padEnd(8)} ${line}`));
}

function runtime(): string {
  const { bun, deno, node } = process.versions;
  return bun ? `Bun ${bun}` : deno ? `Deno ${deno}` : `Node ${node}`;
}

/** Loads the package as a program would; a failure is returned as words. */
function load(): Torch | string {
  const { warn } = console;
  console.warn = () => {}; // the report says it all
  try {
    return createRequire(import.meta.url)("./index.cjs") as Torch;
  } catch (error) {
    return words(error);
  } finally {
    console.warn = warn;
  }
}

const looks = (looked: Looked[]) => looked.map(({ place, outcome }) => `${place}: ${outcome}`);

function hostLines({ host, threads, addons }: HostReport): string[] {
  const count = threads === 1 ? "1 thread" : `${threads} threads`;
  if (host === "native") return [`native addon, ${count}`];
  const why = addons.length === 0 ? "CRESSET_HOST asks for it" : "no addon was loaded";
  return [`WebAssembly, ${count}, since ${why}`];
}

function moduleLine(name: string): string {
  const path = fileURLToPath(new URL(`./wasm/${name}`, import.meta.url));
  if (!existsSync(path)) return `${path}: not there`;
  try {
    new WebAssembly.Module(readFileSync(path));
    return `${path}: ${mebibytes(statSync(path).size)}, compiles`;
  } catch (error) {
    return `${path}: ${words(error)}`;
  }
}

function wasmLines(): string[] {
  let simd = "SIMD";
  try {
    checkHost();
  } catch (error) {
    simd = words(error);
  }
  const shared = typeof SharedArrayBuffer === "undefined" ? "no shared memory" : "shared memory";
  return ["cresset.wasm", "cresset-threads.wasm"].map(moduleLine).concat(`${simd}, ${shared}`);
}

function machineLines(): string[] {
  const model = os.cpus()[0]?.model.trim() ?? "unknown processor";
  const memory = `${gibibytes(os.totalmem())} memory, ${gibibytes(os.freemem())} free`;
  return [`${process.platform} ${process.arch}, ${os.availableParallelism()} × ${model}`, memory];
}

/** The GPUs' names, or the reason why CUDA cannot be used. */
function cudaLines({ cuda }: Torch): string[] {
  try {
    const reason = cuda.whyNot();
    if (reason !== null) return [reason];
    return Array.from({ length: cuda.deviceCount() }, (_, i) => cuda.getDeviceName(i));
  } catch (error) {
    return [words(error)];
  }
}

/** Runs an addition, a product and a gradient; returns what was wrong with them. */
function mistakes(torch: Torch): string[] {
  try {
    const x = torch.tensor([1, 2], { requiresGrad: true });
    x.mul(x).sum().backward();
    const results = {
      addition: [x.add(x).tolist(), [2, 4]],
      product: [
        torch
          .ones([2, 3])
          .matmul(torch.ones([3, 1]))
          .tolist(),
        [[3], [3]],
      ],
      gradient: [x.grad!.tolist(), [2, 4]],
    };
    return Object.entries(results)
      .map(([name, pair]) => [name, ...pair.map((value) => JSON.stringify(value))])
      .filter(([, got, expected]) => got !== expected)
      .map(([name, got, expected]) => `${name}: expected ${expected}, got ${got}`);
  } catch (error) {
    return [words(error)];
  }
}

/** Prints the report; returns whether Cresset works here. */
function doctor(): boolean {
  const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  const { version } = JSON.parse(manifest) as { version: string };
  print("cresset", [`${version} on ${runtime()}`]);
  const torch = load();
  if (typeof torch === "string") {
    print("host", [`none: ${torch}`]);
    print("wasm", wasmLines());
    print("machine", machineLines());
    return false;
  }
  const report = torch._hostReport();
  const wrong = mistakes(torch);
  print("host", hostLines(report));
  print("addon", looks(report.addons));
  print("wasm", wasmLines());
  print("machine", machineLines());
  print("cuda", cudaLines(torch));
  print("check", wrong.length === 0 ? ["addition, product and gradient are right"] : wrong);
  return wrong.length === 0;
}

const [command] = process.argv.slice(2);
if (command === "doctor") {
  process.exitCode = doctor() ? 0 : 1;
} else {
  console.error(usage);
  process.exitCode = command === undefined || command === "--help" ? 0 : 2;
}
