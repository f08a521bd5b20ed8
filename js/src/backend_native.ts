// The native addon as a core: its collector, its errors and its frame.
import * as v8 from "node:v8";
import * as vm from "node:vm";
import type { Backend, MakeError } from "./backend.js";
import { errorFor } from "./errors.js";

/** The addon's functions that the interface of a core does not have. */
interface Addon extends Omit<Backend, "frame"> {
  setFrame(frame: Float64Array): void;
  setHooks(makeError: MakeError, gcMinor: (() => void) | null, gcFull: (() => void) | null): void;
}

export type Gc = (options?: { type: "minor" }) => void;

/** Node starts without a visible gc(); a fresh context made after setting the flag has one. */
export function collector(): Gc | null {
  const existing = (globalThis as { gc?: Gc }).gc;
  if (existing) return existing;
  try {
    v8.setFlagsFromString("--expose-gc");
    // The small scavenges of a sweep end sooner on one thread than with helpers to be woken, which
    // would have to share the cores with the kernels' threads.
    v8.setFlagsFromString("--no-parallel-scavenge");
    const gc = vm.runInNewContext("gc") as Gc;
    return typeof gc === "function" ? gc : null;
  } catch {
    return null; // a host without V8 flags: full collections come by themselves
  }
}

/** Makes a core of the loaded addon. */
export function nativeBackend(loaded: unknown): Backend {
  const addon = loaded as Addon;
  const gc = collector();
  addon.setHooks(errorFor, gc && (() => gc({ type: "minor" })), gc && (() => gc()));
  let current = new Float64Array(0);
  const frame = (length: number) => {
    const grown = new Float64Array(length);
    grown.set(current);
    addon.setFrame(grown);
    return (current = grown);
  };
  // A fresh object: the addon's exports are a slow dictionary to V8.
  return { ...addon, frame };
}
