// `npm run lint` checks formatting (prettier, clang-format) and types; `--fix` rewrites instead.
import { main, must, run, stepAll, StepFailed } from "./steps.mjs";

const fix = process.argv.includes("--fix");

/** Files that git knows or would add, by extension. */
function sources(...extensions) {
  const patterns = extensions.map((extension) => `*.${extension}`);
  const listed = must("git", [
    "ls-files",
    "--cached",
    "--others",
    "--exclude-standard",
    ...patterns,
  ]);
  return listed.split("\n").filter((file) => file !== "" && !file.includes(".gen."));
}

function prettier() {
  const files = sources("ts", "mts", "mjs", "js", "json");
  must("node_modules/.bin/prettier", [fix ? "--write" : "--check", "--log-level=warn", ...files]);
}

function clangFormat() {
  const files = sources("h", "cpp", "cu", "cuh");
  if (fix) return void must("clang-format", ["-i", ...files]);
  const args = ["--dry-run", "--Werror", "--ferror-limit=1", ...files];
  const { ok, output } = run("clang-format", args, { capture: true });
  if (ok) return;
  const unformatted = new Set([...output.matchAll(/^(\S+?):\d+:\d+: error/gm)].map((m) => m[1]));
  throw new StepFailed(`npm run format would change: ${[...unformatted].join(" ")}`);
}

function types() {
  for (const project of ["tsconfig.check.json", "test/browser", "examples/04-browser"]) {
    must("node_modules/.bin/tsc", ["--noEmit", "-p", project]);
  }
}

main(() => stepAll({ prettier, "clang-format": clangFormat, ...(fix ? {} : { types }) }));
