// Finding out where the host waits for a device, and which operator made an error.
import { ValueError } from "../errors.js";
import * as ops from "../ops.gen.js";

const modes = ["default", "warn", "error"] as const;

/**
 * What happens where a copy to the CPU makes the host wait: nothing ("default", 0), a line on
 * stderr ("warn", 1) or an error ("error", 2).
 */
export function setSyncDebugMode(mode: (typeof modes)[number] | 0 | 1 | 2): void {
  const number = typeof mode === "number" ? mode : modes.indexOf(mode);
  if (!(number in modes)) {
    throw new ValueError(
      `setSyncDebugMode: expected "default", "warn" or "error", got ${String(mode)}`,
    );
  }
  ops._cudaSetSwitch("syncDebugMode", number);
}

/** 0, 1 or 2. */
export function getSyncDebugMode(): number {
  return ops._cudaGetSwitch("syncDebugMode");
}

/**
 * Waits for the device after every kernel, so that an error names the operator that made it: slow,
 * for finding mistakes. The variable CUDA_LAUNCH_BLOCKING=1 does the same from the start.
 */
export function setLaunchBlocking(on: boolean): void {
  ops._cudaSetSwitch("launchBlocking", on ? 1 : 0);
}
