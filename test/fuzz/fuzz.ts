// Calls random operators with random arguments: every outcome but a result or a typed error fails.
//   tsx test/fuzz/fuzz.ts [--seconds 60] [--seed N] [--only REGEX] [--trace]
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { run } from "./calls.js";

const { values: options } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    seed: { type: "string" },
    only: { type: "string" },
    child: { type: "string" },
  },
});

if (options.child) {
  const file = openSync(options.child, "w");
  // One file, overwritten before each call: what it holds after a crash is the call that did it.
  const note = (text: string) => writeSync(file, `${text}\0`, 0);
  const report = run(
    Number(options.seconds) * 1000,
    Number(options.seed),
    new RegExp(options.only ?? ""),
    note,
  );
  note(JSON.stringify(report));
  process.exit(0);
}

// The calls run in a child, so that a crash of the process is a finding and not the end. V8
// compiles on the child's main thread: Node may wait for ever at its exit for a compile job that
// waits for the main thread to collect garbage.
const folder = mkdtempSync(join(tmpdir(), "cresset-fuzz-"));
const log = join(folder, "last");
const seed = options.seed ?? String(Date.now() % 1e9);
const child = spawnSync(
  process.execPath,
  [
    ...process.execArgv,
    "--no-concurrent-recompilation",
    fileURLToPath(import.meta.url),
    ...["--child", log, "--seconds", options.seconds, "--seed", seed],
    ...(options.only ? ["--only", options.only] : []),
  ],
  { stdio: "inherit", timeout: (Number(options.seconds) + 120) * 1000 },
);
const last = existsSync(log) ? readFileSync(log, "utf8").split("\0")[0]! : "";
rmSync(folder, { recursive: true });
if (child.status !== 0) {
  const when = last.startsWith("{")
    ? "after the last call:"
    : last
      ? "in"
      : "before the first call";
  const how = child.signal ?? `status ${child.status}`;
  console.error(`seed ${seed}: the process ended with ${how} ${when}\n${last}`);
  process.exit(1);
}
const report = JSON.parse(last) as ReturnType<typeof run>;
for (const finding of report.findings) console.error(`seed ${seed}: ${finding}`);
console.log(
  `fuzz: seed ${seed}, ${report.calls} calls of ${report.operators} operators, ` +
    `${report.results} results, ${report.errors} typed errors, ` +
    `${report.findings.length} findings\n` +
    `slowest: ${report.slowest.milliseconds.toFixed(0)} ms, ${report.slowest.call}`,
);
process.exit(report.findings.length > 0 ? 1 : 0);
