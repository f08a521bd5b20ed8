// The memory benchmarks: peak resident size of long synchronous loops in a process of their own.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Result } from "./benchmarks.js";

/** What a child prints: sizes in MiB. */
export interface MemoryReport {
  baseline: number;
  peak: number;
  budget?: number;
}

const child = fileURLToPath(new URL("memory_child.ts", import.meta.url));

/** Runs one loop; the value is what the process grew by over its state after a warm-up. */
function measure(name: string): Result {
  const args = ["--import", "tsx", child, name];
  const { status, stdout } = spawnSync(process.execPath, args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    // Threads do not change the memory, and on a busy machine they make this long loop longer.
    env: { ...process.env, OMP_NUM_THREADS: "1" },
  });
  if (status !== 0) throw new Error(`${name}: the process ended with status ${status}`);
  const { baseline, peak, budget } = JSON.parse(stdout) as MemoryReport;
  const value = peak - baseline;
  // The promise: at most twice the budget over the baseline.
  return { name, unit: "MiB", value, ...(budget === undefined ? {} : { limit: 2 * budget }) };
}

export function runMemory(): Result[] {
  return ["steps.peak", "garbage.peak"].map(measure);
}
