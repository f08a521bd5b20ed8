// `npm run pack:portable`: one archive that runs on a bare x86-64 Linux machine with CUDA 13; with
// `-- --built` from what is built already.
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
import { parseArgs } from "node:util";
import { buildNative, buildTypeScript } from "./build.mjs";
import { main, must, root, step, StepFailed } from "./steps.mjs";

const folder = join(root, "build", "portable");
const stage = join(folder, "cresset");
const archive = join(folder, "cresset-portable.tar.xz");
const limitMiB = 60;

const programs = ["cresset.node", "libcresset_cuda.so", "core_tests", "cuda_tests", "raw_cuda"];
const trees = [
  "package.json",
  "tsconfig.json",
  "dist",
  "js/src",
  "test/parity",
  "test/bench",
  "test/cuda",
  "build/release/cresset_kernels",
];
/** GPUs whose most used kernels are compiled ahead. */
const architectures = ["sm_80", "sm_90", "sm_100"];
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

/** Of the compiler; newer ones serve as well, and other programs may need those. */
const ofCompiler = /^(libstdc\+\+|libgcc_s)[.-]/;

/**
 * Copies the shared libraries that `program` needs, under the names it asks for, into lib/, or into
 * lib/compiler, which is used only where the machine has none or older ones.
 */
function copyLibraries(program) {
  for (const line of must("ldd", [program]).split("\n")) {
    const [, name, path] = /^\s*(\S+) => (\S+)/.exec(line) ?? [];
    if (!name || path === "not" || elsewhere.test(name)) continue;
    const folder = ofCompiler.test(name) ? "lib/compiler" : "lib";
    cpSync(realpathSync(path), join(stage, folder, name));
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
PATH="$PWD/bin:$PATH:/usr/local/cuda/bin"
build/release/core_tests --gtest_list_tests >/dev/null 2>&1 || add "$PWD/lib/compiler"

# The tests on the GPU, shared out to processes: each spends its time compiling kernels.
gpu_tests() {
  shards=$(nproc)
  [ "$shards" -gt 12 ] && shards=12
  logs=$(mktemp -d)
  i=0
  while [ $i -lt "$shards" ]; do
    (
      GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i "$@" >"$logs/$i" 2>&1
      echo $? >"$logs/$i.status"
    ) &
    i=$((i + 1))
  done
  wait
  failed=0
  while [ $i -gt 0 ]; do
    i=$((i - 1))
    if [ "$(cat "$logs/$i.status")" = 0 ]; then
      tail -n 1 "$logs/$i"
    else
      failed=1
      cat "$logs/$i"
    fi
  done
  rm -r "$logs"
  return $failed
}

task=$1
[ $# -gt 0 ] && shift
case $task in
  parity) exec node --import tsx test/parity/run.ts --device cuda "$@" ;;
  bench)
    [ $# -eq 0 ] && set -- cuda
    exec node --import tsx test/bench/run.ts "$@" ;;
  test)
    build/release/core_tests --gtest_brief=1 || exit 1
    gpu_tests build/release/cuda_tests "$@" || exit 1
    exec node test/cuda/runtime.mjs dist/node.mjs ;;
  sanitize)
    gpu_tests compute-sanitizer --tool memcheck --error-exitcode 1 build/release/cuda_tests "$@" ;;
  node) exec node "$@" ;;
  *) sed -n 2p "$0" ; exit 2 ;;
esac
`;

/** Compiles the most used kernels ahead, beside the library that looks for them there. */
function compileKernels() {
  const kernels = join(root, "build", "release", "cresset_kernels");
  must("cmake", ["--build", "build/release", "--target", "cuda_hot_list"]);
  rmSync(kernels, { recursive: true, force: true });
  must(join(root, "build", "release", "cuda_hot_list"), [kernels, ...architectures]);
}

main(() => {
  const { values } = parseArgs({ options: { built: { type: "boolean", default: false } } });
  if (!values.built) {
    step("native build", () => buildNative());
    step("typescript", buildTypeScript);
    step("kernels", compileKernels);
  }
  step("collect", () => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(join(stage, "lib", "compiler"), { recursive: true });
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
