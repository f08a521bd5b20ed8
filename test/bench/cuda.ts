// GPU benchmarks that need a process of their own: reserved memory, and the first use of kernels.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Result } from "./benchmarks.js";

const child = fileURLToPath(new URL("cuda_child.ts", import.meta.url));

/** Runs one loop in a process whose kernel cache lies in `cache`; gives what it printed. */
function measure(name: string, cache: string): Record<string, number> | undefined {
  const { status, stdout } = spawnSync(process.execPath, ["--import", "tsx", child, name], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, XDG_CACHE_HOME: cache },
  });
  if (status === 0) return JSON.parse(stdout) as Record<string, number>;
  console.log(`${name}: the process ended with status ${status}`);
  return undefined;
}

/** `garbage.reserved`, and `kernels.cold` and `kernels.warm`: first use of 30 kernels. */
export function runCuda(): Result[] {
  const cache = mkdtempSync(join(tmpdir(), "cresset-cache-"));
  try {
    const cold = measure("kernels", cache);
    const warm = measure("kernels", cache);
    const garbage = measure("garbage", cache);
    const rows: (Result | undefined)[] = [
      cold && { name: "kernels.cold", unit: "ms", value: cold["ms"]!, limit: 3000 },
      warm && { name: "kernels.warm", unit: "ms", value: warm["ms"]!, limit: 300 },
      garbage && {
        name: "garbage.reserved",
        unit: "MiB",
        value: garbage["reserved"]!,
        limit: 2 * garbage["budget"]!,
      },
    ];
    return rows.filter((row) => row !== undefined);
  } finally {
    rmSync(cache, { recursive: true });
  }
}
