// Makes Cresset ready in a browser's page or worker: `init` fetches the WebAssembly core.
import { backend, connect, isConnected, setInit, type InitOptions } from "./backend.js";
import { WasmBackend } from "./backend_wasm.js";
import { checkHost, compile, fetchModule, threadCount, threadsAllowed } from "./wasm/loader.js";
import { Core, isThreaded, sharedMemory } from "./wasm/module.js";
import { Threads, type Spawn } from "./wasm/threads.js";

// Bundlers find the files by these very words.
const singleUrl = () => new URL("./wasm/cresset.wasm", import.meta.url);
const threadedUrl = () => new URL("./wasm/cresset-threads.wasm", import.meta.url);

function moduleUrl(path: string | URL | undefined, threaded: boolean): string | URL {
  if (path === undefined) return threaded ? threadedUrl() : singleUrl();
  if (!String(path).endsWith("/")) return path;
  return `${String(path)}${threaded ? "cresset-threads.wasm" : "cresset.wasm"}`;
}

/** A worker's script must be of the page's origin; another is imported by a local one. */
function workerFrom(url: string): Worker {
  const here = typeof location === "undefined" ? undefined : location;
  if (!here || new URL(url, here.href).origin === here.origin) {
    return new Worker(url, { type: "module" });
  }
  const text = `import ${JSON.stringify(url)};`;
  const local = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  return new Worker(local, { type: "module" });
}

function spawner(path: string | URL | undefined): Spawn {
  return (start, failed) => {
    const worker = path
      ? workerFrom(String(path))
      : new Worker(new URL("./wasm/worker.js", import.meta.url), { type: "module" });
    worker.onerror = (event) => failed(event.message ?? "a worker's script did not load");
    worker.postMessage(start);
  };
}

async function start(options: InitOptions): Promise<void> {
  checkHost();
  const cores = (typeof navigator !== "undefined" && navigator.hardwareConcurrency) || 1;
  const count = threadsAllowed() ? threadCount(options.threads, cores) : 1;
  const module = options.wasmBinary
    ? await compile(options.wasmBinary)
    : await fetchModule(moduleUrl(options.wasmPath, count > 1));
  const host = { reclaim: (_: number) => 0, grown: () => {} };
  const threaded = isThreaded(module);
  const core = await Core.start(module, threaded ? sharedMemory() : null, host);
  const threads = threaded ? new Threads(core, module, spawner(options.workerPath)) : null;
  const made = new WasmBackend(core, threads, null);
  host.reclaim = (attempt) => made.reclaim(attempt);
  host.grown = () => made.grown();
  connect(made);
  if (!threads) return;
  threads.use(count);
  const failure = await threads.ready();
  if (failure) console.warn(`cresset: runs on fewer threads: ${failure}`);
}

let starting: Promise<void> | null = null;

setInit(async (options) => {
  if (isConnected()) {
    if (options.threads !== undefined) backend.threads(threadCount(options.threads, 1));
    return;
  }
  starting ??= start(options).finally(() => (starting = null));
  await starting;
});
