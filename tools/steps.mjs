// Small helpers of the set-up and test scripts: run a command, and report each step on one line.
import { spawnSync } from "node:child_process";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

/** The root of the repository, without a trailing slash. */
export const root = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

/** Thrown when a step fails; its message was printed already. */
export class StepFailed extends Error {}

/**
 * Runs a command in the root and returns `{ ok, output }`; one that cannot be started has failed.
 * With `quiet` its output is shown only on failure, with `capture` never.
 */
export function run(command, args, { quiet = false, capture = false, env = {} } = {}) {
  const child = spawnSync(command, args, {
    cwd: root,
    env: { ...process.env, ...env },
    encoding: "utf8",
    maxBuffer: 1 << 28,
    stdio: quiet || capture ? ["ignore", "pipe", "pipe"] : ["ignore", "inherit", "inherit"],
  });
  const output = (child.stdout ?? "") + (child.stderr ?? "");
  const ok = child.status === 0;
  if (!ok) {
    if (child.error) console.error(`${command}: ${child.error.message}`);
    if (quiet) process.stderr.write(output);
  }
  return { ok, output };
}

/**
 * Runs `work` and prints its name, outcome and time. `work` returns a short note ("up to date"),
 * or nothing; it fails the step by throwing.
 */
export function step(name, work) {
  const begin = performance.now();
  const line = (mark, note) => {
    const seconds = ((performance.now() - begin) / 1000).toFixed(1);
    console.log(
      `${mark} ${name.padEnd(18)} ${`${seconds} s`.padStart(8)}  ${note ?? ""}`.trimEnd(),
    );
  };
  try {
    line("ok  ", work());
  } catch (error) {
    line("FAIL", error.message);
    throw error instanceof StepFailed ? error : new StepFailed(error.message, { cause: error });
  }
}

/** Runs a command quietly inside a step; throws a `StepFailed` that names it when it fails. */
export function must(command, args, options = {}) {
  const { ok, output } = run(command, args, { quiet: true, ...options });
  if (!ok) throw new StepFailed(`${[basename(command), ...args.slice(0, 3)].join(" ")} failed`);
  return output;
}

/** Runs every step and only then fails, so that one run shows all that is wrong. */
export function stepAll(steps) {
  const failed = [];
  for (const [name, work] of Object.entries(steps)) {
    try {
      step(name, work);
    } catch (error) {
      failed.push(error);
    }
  }
  const odd = failed.find((error) => !(error instanceof StepFailed));
  if (failed.length > 0) throw odd ?? failed[0];
}

/** Runs a script's main function; a failed step ends the process with status 1. */
export function main(work) {
  try {
    work();
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error;
    process.exitCode = 1;
  }
}
