// `npm test`: sets up what is missing, runs every kind of test, ends with one line of totals.
// `npm test -- core js` runs only the named groups; without names all of them run.
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { buildDemo } from "./demo.mjs";
import { setup } from "./setup.mjs";
import { main, root, run, stepAll, StepFailed } from "./steps.mjs";

const totals = { passed: 0, failed: 0 };

/** Adds a group's counts to the totals and returns the note for its line. */
function count(passed, failed) {
  totals.passed += passed;
  totals.failed += failed;
  if (failed > 0) throw new StepFailed(`${passed} passed, ${failed} failed`);
  return `${passed} passed`;
}

function lint() {
  const { ok } = run(process.execPath, ["tools/lint.mjs"], { quiet: true });
  return count(ok ? 1 : 0, ok ? 0 : 1);
}

/** The GoogleTest programs, through ctest; each writes its report to one folder. */
function core() {
  const folder = join(root, "build", "gtest");
  rmSync(folder, { recursive: true, force: true });
  const args = ["--test-dir", "build/release", "--output-on-failure", "--no-tests=error"];
  const { ok } = run("ctest", args, { quiet: true, env: { GTEST_OUTPUT: `xml:${folder}/` } });
  const reports = existsSync(folder) ? readdirSync(folder) : [];
  let tests = 0;
  let failed = 0;
  for (const report of reports) {
    const [head] = /<testsuites [^>]*>/.exec(readFileSync(join(folder, report), "utf8")) ?? [""];
    const attribute = (name) => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(head)?.[1] ?? 0);
    tests += attribute("tests");
    failed += attribute("failures") + attribute("errors") + attribute("disabled");
  }
  return count(tests - failed, failed || (ok ? 0 : 1));
}

/** Runs the tests that vitest finds with a configuration. */
function vitest(config, options = [], env = {}) {
  const report = join(root, "build", "vitest.json");
  rmSync(report, { force: true });
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const args = ["run", "--config", config, ...reporters, ...options];
  const { ok } = run("node_modules/.bin/vitest", args, { quiet: true, env });
  if (!existsSync(report)) return count(0, 1);
  const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(report, "utf8"));
  return count(numPassedTests, numFailedTests || (ok ? 0 : 1));
}

const js = () => vitest("vitest.config.ts");

/** The packed npm package in other hosts and bundlers. */
const packaged = () => vitest("test/package/vitest.config.ts");

/** The tests that are about the sources, Node's memory policy or CUDA's drivers. */
const nativeOnly = [
  "cuda",
  "data*",
  "device",
  "examples-lib",
  "generated",
  "memory",
  "readme",
  "style",
  "types",
];

/** The tests of js on the WebAssembly core. */
function wasm() {
  const excluded = nativeOnly.map((name) => `--exclude=test/js/${name}.test.ts`);
  return vitest("vitest.config.ts", excluded, { CRESSET_HOST: "wasm" });
}

/** The demo in a real browser. */
function browser() {
  buildDemo();
  return vitest("test/browser/vitest.config.ts");
}

/** Every example must run to its end; `--quick` asks the long ones for fewer steps. */
function examples() {
  const folder = join(root, "examples");
  const names = existsSync(folder)
    ? readdirSync(folder).filter((name) => name.endsWith(".ts"))
    : [];
  let failed = 0;
  for (const name of names) {
    const args = ["--import", "tsx", `examples/${name}`, "--quick"];
    if (run(process.execPath, args, { quiet: true }).ok) continue;
    console.error(`examples/${name} failed`);
    failed++;
  }
  return count(names.length - failed, failed);
}

/** The comparison with PyTorch's recorded results; its last line gives its counts. */
function parity(...options) {
  const runner = "test/parity/run.ts";
  if (!existsSync(join(root, runner))) return "not present";
  const args = ["--import", "tsx", runner, ...options];
  const { ok, output } = run(process.execPath, args, { quiet: true });
  const line = [...output.matchAll(/^(\d+) passed, (\d+) failed/gm)].at(-1);
  return count(Number(line?.[1] ?? 0), Number(line?.[2] ?? 0) || (ok && line ? 0 : 1));
}

/** Random calls for a minute; one seed, so that a failure can be repeated. */
function fuzz() {
  const args = ["--import", "tsx", "test/fuzz/fuzz.ts", "--seconds", "60", "--seed", "1"];
  const { ok } = run(process.execPath, args, { quiet: true });
  return count(ok ? 1 : 0, ok ? 0 : 1);
}

const groups = {
  lint,
  core,
  js,
  wasm,
  package: packaged,
  browser,
  examples,
  parity: () => parity(),
  "wasm-parity": () => parity("--host", "wasm"),
  fuzz,
};

main(() => {
  const asked = process.argv.slice(2);
  const unknown = asked.find((name) => !(name in groups));
  if (unknown) {
    console.error(`test: expected groups among ${Object.keys(groups).join(", ")}, got ${unknown}`);
    throw new StepFailed("unknown group");
  }
  setup();
  const chosen = Object.entries(groups).filter(
    ([name]) => asked.length === 0 || asked.includes(name),
  );
  try {
    stepAll(Object.fromEntries(chosen));
  } finally {
    console.log(`${totals.passed} passed, ${totals.failed} failed`);
  }
});
