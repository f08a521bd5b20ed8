// `npm run pack:portable`: one archive that runs on a bare x86-64 Linux machine with CUDA 13.
//
// It holds Node, the addon, the CUDA library, the shared libraries they need beyond those of the
// C library and of CUDA, the compiled JavaScript, the parity runner with PyTorch's results, the
// benchmarks and the C++ tests, laid out as in the repository, and run.sh.
import {
  cpSync,
  existsSync,
  mkdirSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { buildNative, buildTypeScript } from "./build.mjs";
import { main, must, root, step, StepFailed } from "./steps.mjs";

const folder = join(root, "build", "portable");
const stage = join(folder, "cresset");
const archive = join(folder, "cresset-portable.tar.xz");
const limitMiB = 60;

const programs = ["cresset.node", "libcresset_cuda.so", "core_tests", "cuda_tests", "raw_cuda"];
const trees = ["package.json", "dist", "js/src", "test/parity", "test/bench", "tsconfig.json"];
/** tsx and what it loads: the runners are TypeScript. */
const modules = ["tsx", "esbuild", "@esbuild/linux-x64"];

/** Libraries that every Linux machine has, or that come with the driver and CUDA. */
const elsewhere =
  /^(linux-vdso|ld-linux|libc|libm|libdl|librt|libpthread|libcuda|libcu\w+|libnv\w+)[.-]/;

function copy(path) {
  const from = join(root, path);
  if (!existsSync(from)) return false;
  mkdirSync(dirname(join(stage, path)), { recursive: true });
  const skip = (file) => /\/peers\/node_modules|\.map$|\.tsbuildinfo$/.test(file);
  cpSync(from, join(stage, path), { recursive: true, filter: (file) => !skip(file) });
  return true;
}

/** Copies the shared libraries that `program` needs into lib/, under the names it asks for. */
function copyLibraries(program) {
  for (const line of must("ldd", [program]).split("\n")) {
    const [, name, path] = /^\s*(\S+) => (\S+)/.exec(line) ?? [];
    if (!name || path === "not" || elsewhere.test(name)) continue;
    cpSync(realpathSync(path), join(stage, "lib", name));
  }
}

const runScript = String.raw`#!/bin/sh
# Runs Cresset's checks on this machine: run.sh parity|bench|test|sanitize [options of that runner].
cd "$(dirname "$0")" || exit 1
add() { if [ -d "$1" ]; then LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$1"; fi; }
LD_LIBRARY_PATH="$PWD/lib"
for folder in /usr/local/cuda/lib64 /usr/local/cuda/targets/x86_64-linux/lib; do add "$folder"; done
# CUDA's libraries as Python packages, where there is no other installation.
packages=$(python3 -c "import site; print(*site.getsitepackages())" 2>/dev/null)
for place in $packages; do
  for folder in "$place"/nvidia/*/lib; do add "$folder"; done
done
export LD_LIBRARY_PATH
PATH="$PWD/bin:$PATH"
task=$1
[ $# -gt 0 ] && shift
case $task in
  parity) exec node --import tsx test/parity/run.ts --device cuda "$@" ;;
  bench) exec node --import tsx test/bench/run.ts "$@" ;;
  test)
    build/release/core_tests || exit 1
    exec build/release/cuda_tests "$@" ;;
  sanitize)
    exec compute-sanitizer --tool memcheck --error-exitcode 1 build/release/cuda_tests "$@" ;;
  node) exec node "$@" ;;
  *) sed -n 2p "$0" ; exit 2 ;;
esac
`;

main(() => {
  step("native build", () => buildNative());
  step("typescript", buildTypeScript);
  step("collect", () => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(join(stage, "lib"), { recursive: true });
    mkdirSync(join(stage, "bin"));
    for (const path of trees) copy(path);
    for (const name of modules) copy(join("node_modules", name));
    const built = programs.map((name) => join("build", "release", name)).filter(copy);
    for (const path of built) copyLibraries(join(root, path));
    for (const path of built) must("strip", ["--strip-unneeded", join(stage, path)]);
    cpSync(realpathSync(process.execPath), join(stage, "bin", "node"));
    must("strip", ["--strip-unneeded", join(stage, "bin", "node")]);
    writeFileSync(join(stage, "run.sh"), runScript, { mode: 0o755 });
    const missing = programs.filter((name) => !built.some((path) => basename(path) === name));
    return missing.length > 0 ? `without ${missing.join(", ")}` : undefined;
  });
  step("compress", () => {
    must("tar", ["-C", folder, "-cf", archive, "-I", "xz -T0 -6", "cresset"]);
    const mib = statSync(archive).size / 2 ** 20;
    if (mib > limitMiB) throw new StepFailed(`${archive}: ${mib.toFixed(1)} MiB, over ${limitMiB}`);
    return `${archive}, ${mib.toFixed(1)} MiB`;
  });
});
