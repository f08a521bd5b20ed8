// Everything that a fresh clone needs before it runs: system packages, npm packages, all builds.
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { buildNative, buildTypeScript, buildWasmModules } from "./build.mjs";
import { main, must, root, step } from "./steps.mjs";

function systemPackages() {
  const output = must("bash", ["tools/system-packages.sh"]);
  return output.trim().split("\n").at(-1) || "up to date";
}

/** True when npm's own record of the last install is not older than the lock file. */
function nodeModulesAreCurrent() {
  const installed = join(root, "node_modules", ".package-lock.json");
  const lock = join(root, "package-lock.json");
  return existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs;
}

function nodeModules() {
  if (nodeModulesAreCurrent()) return "up to date";
  must("npm", ["ci"]);
  return "npm ci";
}

/**
 * Runs every step; a later one is skipped when an earlier one fails. `host` leaves out what is not
 * needed: "native" is Node on this machine's CPU, "web" a browser.
 */
export function setup({ host = "all" } = {}) {
  step("system packages", systemPackages);
  step("npm packages", nodeModules);
  if (host !== "web") step("native build", () => buildNative());
  if (host !== "native") buildWasmModules();
  step("typescript", buildTypeScript);
}

if (process.argv[1] === import.meta.filename) main(() => setup());
