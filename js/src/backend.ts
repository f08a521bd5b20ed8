// The interface to the core, whatever it is built as, and the one that is in use.
import { CressetError, type errorFor } from "./errors.js";

/** What a core offers. */
export interface Backend {
  call(op: number): void;
  callInto(op: number, out: object): void;
  adopt(id: number, holder: object): void;
  free(id: number): void;
  /** Opens a scope; its depth. */
  beginScope(): number;
  /** Ends a scope; the frame lists the survivors, and then those of them that moved outwards. */
  endScope(depth: number): void;
  /** Takes the handles that the frame lists out of every scope. */
  keep(): void;
  scopeIds(depth: number): number[];
  /** Depth of a handle's scope; 0 for none, -1 for a freed handle. */
  scopeOf(id: number): number;
  /** The live handles as JSON. */
  snapshot(): string;
  read(id: number, bytes: Uint8Array): void;
  write(id: number, bytes: Uint8Array): void;
  /**
   * A frame of at least `length` doubles, with the contents of the one before, which it replaces.
   * `moved` is told when the frame gets another view, for the core's memory may move.
   */
  frame(length: number, moved: (frame: Float64Array) => void): Float64Array;
  collect(full: boolean): void;
  hint(): void;
  setBudget(bytes: number): void;
  setLimit(bytes: number): void;
  stats(): number[];
  emptyCache(): void;
  resetPeak(): void;
  threads(n?: number): number;
  schemas(): string;
  rollHash(): number;
  buildInfo(): string;
}

/** What `init` takes; in Node with the native addon only `threads` has an effect. */
export interface InitOptions {
  /**
   * Where the WebAssembly module is: the address of a `.wasm` file, or of a folder that holds
   * `cresset.wasm` and `cresset-threads.wasm`, with a slash at its end.
   */
  wasmPath?: string | URL;
  /** The bytes of the module, instead of a path. */
  wasmBinary?: ArrayBuffer | Uint8Array;
  /** Where `worker.js`, the script of the helping threads, is. */
  workerPath?: string | URL;
  /** Number of threads; `false` is 1. All cores are used where the host allows it by default. */
  threads?: number | boolean;
  /** Node only: which core to use. Only before the first tensor is made. */
  host?: "native" | "wasm";
}

/** How a place (Node, a browser) makes its core ready. */
export type Init = (options: InitOptions) => Promise<void>;

export type MakeError = typeof errorFor;

const notReady = new Proxy({} as Backend, {
  get() {
    throw new CressetError("cresset is not ready: await torch.init() before the first operator");
  },
});

/** The core in use; every operator before `connect` throws. */
export let backend: Backend = notReady;

const watchers: ((connected: Backend) => void)[] = [];

/** Calls `watcher` with every core that is put to use, one that is in use already included. */
export function onConnect(watcher: (connected: Backend) => void): void {
  watchers.push(watcher);
  if (backend !== notReady) watcher(backend);
}

/** Puts a core to use. */
export function connect(core: Backend): void {
  backend = core;
  for (const watcher of watchers) watcher(core);
}

export function isConnected(): boolean {
  return backend !== notReady;
}

let initializer: Init | null = null;

export function setInit(init: Init): void {
  initializer = init;
}

/**
 * Makes Cresset ready. In a browser it fetches the WebAssembly core and must be awaited before the
 * first operator; in Node it is optional and returns at once.
 */
export async function init(options: InitOptions = {}): Promise<void> {
  await initializer!(options);
}
