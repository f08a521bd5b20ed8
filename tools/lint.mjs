// `npm run lint` checks formatting (prettier, clang-format) and types; `--fix` rewrites instead.
import { main, must, step } from "./steps.mjs";

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
  if (files.length === 0) return "no files";
  must("clang-format", [...(fix ? ["-i"] : ["--dry-run", "--Werror"]), ...files]);
}

function types() {
  must("node_modules/.bin/tsc", ["--noEmit", "-p", "tsconfig.check.json"]);
}

main(() => {
  step("prettier", prettier);
  step("clang-format", clangFormat);
  if (!fix) step("types", types);
});
