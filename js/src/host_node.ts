// Makes Cresset ready in Node: the native addon, or the WebAssembly core where there is none.
import { existsSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import * as vm from "node:vm";
import { Worker as NodeWorker } from "node:worker_threads";
import { loadAddon, type Looked } from "./addon.js";
import { backend, connect, setInit, type Backend, type InitOptions } from "./backend.js";
import { collector, nativeBackend } from "./backend_native.js";
import { WasmBackend } from "./backend_wasm.js";
import { NotImplementedError, ValueError } from "./errors.js";
import { threadCount } from "./wasm/loader.js";
import { Core, isThreaded, sharedMemory } from "./wasm/module.js";
import { Threads, type Spawn } from "./wasm/threads.js";

/** What was found on this machine, for `npx cresset doctor`. */
export interface HostReport {
  host: "native" | "wasm";
  addons: Looked[];
  wasm: Looked[];
  threads: number;
}

const report: { addons: Looked[]; wasm: Looked[] } = { addons: [], wasm: [] };
let kind: HostReport["host"] = "native";
let helpers: Threads | null = null;

export function hostReport(): HostReport {
  return { host: kind, ...report, threads: backend.threads() };
}

/** Where a file of the WebAssembly core is; this file runs in `dist` or in `js/src`. */
function place(name: string): string {
  const [near, built] = [`./wasm/${name}`, `../../dist/wasm/${name}`].map((path) =>
    fileURLToPath(new URL(path, import.meta.url)),
  ) as [string, string];
  return !existsSync(near) && existsSync(built) ? built : near;
}

function readModule(options: InitOptions, threaded: boolean): WebAssembly.Module {
  if (options.wasmBinary) return new WebAssembly.Module(options.wasmBinary);
  const pathOf = (name: string) => {
    const given = options.wasmPath ? String(options.wasmPath) : place(name);
    const path = given.endsWith("/") ? given + name : given;
    return path.startsWith("file:") ? fileURLToPath(path) : path;
  };
  const wanted = pathOf(threaded ? "cresset-threads.wasm" : "cresset.wasm");
  const path = existsSync(wanted) ? wanted : pathOf("cresset.wasm");
  report.wasm.push({ place: path, outcome: existsSync(path) ? "loaded" : "not there" });
  if (existsSync(path)) return new WebAssembly.Module(readFileSync(path));
  const looked = report.addons.map(({ place: at, outcome }) => `${at}: ${outcome}`);
  const all = [...looked, `${path}: not there`].join("; ");
  throw new NotImplementedError(`cresset: no core was found (${all}); run "npm run build"`);
}

function spawner(path: string): Spawn {
  return (start, failed) => {
    const worker = new NodeWorker(path, { workerData: start, execArgv: [] });
    worker.on("error", (error) => failed(error.message));
    worker.unref();
  };
}

/**
 * Collects garbage and empties the WeakRefs of what was collected, within the running job: V8 keeps
 * what a WeakRef has shown until a microtask queue has run, and an empty script's own queue counts.
 */
function collectNow(): (() => void) | null {
  const gc = collector();
  if (!gc) return null;
  const context = vm.createContext({}, { microtaskMode: "afterEvaluate" });
  const nothing = new vm.Script("0");
  return () => {
    nothing.runInContext(context);
    gc();
  };
}

/** Starts the WebAssembly core at once; helping threads come up on their own. */
function startWasm(options: InitOptions): Backend {
  const workerPath = options.workerPath ? String(options.workerPath) : place("worker.js");
  const asked = process.env["OMP_NUM_THREADS"];
  const wanted = options.threads ?? (asked ? Number(asked) : undefined);
  const count = existsSync(workerPath) ? threadCount(wanted, availableParallelism()) : 1;
  const module = readModule(options, count > 1);
  const threaded = isThreaded(module);
  const host = { reclaim: (_: number) => 0, grown: () => {} };
  const core = Core.startSync(module, threaded ? sharedMemory() : null, host);
  helpers = threaded ? new Threads(core, module, spawner(workerPath)) : null;
  const made = new WasmBackend(core, helpers, collectNow());
  host.reclaim = (attempt) => made.reclaim(attempt);
  host.grown = () => made.grown();
  helpers?.use(count);
  kind = "wasm";
  return made;
}

function choose(): Backend {
  const forced = process.env["CRESSET_HOST"];
  if (forced && forced !== "native" && forced !== "wasm") {
    throw new ValueError(`cresset: expected CRESSET_HOST to be native or wasm, got ${forced}`);
  }
  if (forced === "wasm") return startWasm({});
  const { addon, looked } = loadAddon();
  report.addons.push(...looked);
  if (addon) return nativeBackend(addon);
  const why = looked.map(({ place: at, outcome }) => `${at}: ${outcome}`).join("; ");
  if (forced) throw new NotImplementedError(`cresset: no native core (${why})`);
  const made = startWasm({});
  console.warn(`cresset: no native addon (${why}); runs on WebAssembly, which is slower`);
  return made;
}

connect(choose());

setInit(async (options) => {
  const other = options.host !== undefined && options.host !== kind;
  if (other) {
    const { tensors } = { tensors: backend.stats()[6]! };
    if (tensors > 0) throw new ValueError(`init: expected no tensors yet, got ${tensors}`);
    if (options.host === "native") {
      throw new NotImplementedError("init: no native addon; see the warning at the start");
    }
    connect(startWasm(options));
  } else if (options.threads !== undefined) {
    backend.threads(threadCount(options.threads, availableParallelism()));
  }
  const failure = await helpers?.ready();
  if (failure) console.warn(`cresset: runs on fewer threads: ${failure}`);
});
