// Finds and loads the native addon, and tells where it looked.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { NotImplementedError } from "./errors.js";

/** One place where an artifact was looked for. */
export interface Looked {
  place: string;
  /** "loaded", "not there", "not installed", or why it could not be loaded. */
  outcome: string;
}

const require = createRequire(import.meta.url);

/** The npm package that carries the prebuilt addon for this machine. */
export const addonPackage = `@cresset/${process.platform}-${process.arch}`;

/** Loads one addon; a failure is returned as words. */
function load(path: string): { addon: unknown; outcome: string } {
  if (!existsSync(path)) return { addon: null, outcome: "not there" };
  try {
    return { addon: require(path), outcome: "loaded" };
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    return { addon: null, outcome: words.split("\n")[0]! };
  }
}

function installedAddon(): string | null {
  try {
    return require.resolve(`${addonPackage}/cresset.node`);
  } catch {
    return null;
  }
}

/** Where a clone's build leaves the addon; this file runs in `dist` or in `js/src`. */
function builtAddon(): string {
  const [near, far] = ["../", "../../"].map((up) => fileURLToPath(new URL(up, import.meta.url)));
  const root = existsSync(`${near}package.json`) ? near : far;
  return `${root}build/release/cresset.node`;
}

/**
 * Loads the addon that `CRESSET_ADDON` names, else that of the package for this machine, else that
 * of a clone's build; `addon` is null when there is none. Throws when the named one does not load.
 */
export function loadAddon(): { addon: unknown; looked: Looked[] } {
  // OpenMP reads this when it is loaded. Only oneDNN uses its threads, and rarely: idle ones should
  // not spin on cores where the threads of the core's own pool run.
  if (!process.env["OMP_WAIT_POLICY"]) process.env["GOMP_SPINCOUNT"] ??= "1000";
  const named = process.env["CRESSET_ADDON"];
  if (named) {
    const { addon, outcome } = load(named);
    if (addon) return { addon, looked: [{ place: named, outcome }] };
    throw new NotImplementedError(`cresset: could not load CRESSET_ADDON=${named}: ${outcome}`);
  }
  const looked: Looked[] = [];
  const installed = installedAddon();
  if (!installed) looked.push({ place: addonPackage, outcome: "not installed" });
  const built = builtAddon();
  for (const place of installed ? [installed, built] : [built]) {
    const { addon, outcome } = load(place);
    looked.push({ place, outcome });
    if (addon) return { addon, looked };
  }
  return { addon: null, looked };
}
