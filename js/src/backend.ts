// Finds and loads the native core, and connects it to the collector and the error classes.
import { createRequire } from "node:module";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as v8 from "node:v8";
import * as vm from "node:vm";
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

const places = ["../build/release/cresset.node", "../cresset.node"];

function load(): Backend {
  const require = createRequire(import.meta.url);
  const override = process.env["CRESSET_ADDON"];
  const candidates = override
    ? [override]
    : ["..", "../.."].flatMap((up) =>
        places.map((p) => fileURLToPath(new URL(`${up}/${p.slice(3)}`, import.meta.url))),
      );
  const found = candidates.find((path) => existsSync(path));
  if (!found) {
    const looked = candidates.join(", ");
    throw new NotImplementedError(
      `cresset: no native core was found (looked for ${looked}); run "npm run build"`,
    );
  }
  // OpenMP reads this when it is loaded. Idle threads spin for some microseconds, which catches
  // the next operator of a training step, and then sleep, which leaves shared cores to others.
  if (!process.env["OMP_WAIT_POLICY"]) process.env["GOMP_SPINCOUNT"] ??= "20000";
  return require(found) as Backend;
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
