// Finds and loads the native core, and connects it to the collector and the error classes.
import * as v8 from "node:v8";
import * as vm from "node:vm";
import { loadAddon } from "./addon.js";
import { errorFor, NotImplementedError } from "./errors.js";

/** What a core offers, whatever it is built as. */
export interface Backend {
  call(op: number): void;
  callInto(op: number, out: object): void;
  adopt(id: number, holder: object): void;
  free(id: number): void;
  read(id: number, bytes: Uint8Array): void;
  write(id: number, bytes: Uint8Array): void;
  setFrame(frame: Float64Array): void;
  setHooks(
    makeError: (kind: number, message: string) => Error,
    gcMinor: (() => void) | null,
    gcFull: (() => void) | null,
  ): void;
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

function load(): Backend {
  const { addon, looked } = loadAddon();
  if (addon) return addon as Backend;
  const places = looked.map(({ place, outcome }) => `${place}: ${outcome}`).join("; ");
  throw new NotImplementedError(`cresset: no native core (${places}); run "npm run build"`);
}

type Gc = (options?: { type: "minor" }) => void;

// Node starts without a visible gc(); a fresh context made after setting the flag has one.
function collector(): Gc | null {
  const existing = (globalThis as { gc?: Gc }).gc;
  if (existing) return existing;
  try {
    v8.setFlagsFromString("--expose-gc");
    const gc = vm.runInNewContext("gc") as Gc;
    return typeof gc === "function" ? gc : null;
  } catch {
    return null; // a host without V8 flags: full collections come by themselves
  }
}

function start(): Backend {
  const core = load();
  const gc = collector();
  core.setHooks(errorFor, gc && (() => gc({ type: "minor" })), gc && (() => gc()));
  return core;
}

export const backend: Backend = start();
