// Builds the native and the WebAssembly core (CMake, Ninja) and the TypeScript side; ninja and tsc
// skip what is done.
import { copyFileSync, existsSync, mkdirSync, statSync } from "node:fs";
import { availableParallelism, homedir } from "node:os";
import { dirname, join } from "node:path";
import { main, must, root, step, StepFailed } from "./steps.mjs";

/** What each native build folder is configured with. */
const presets = {
  release: ["-DCMAKE_BUILD_TYPE=Release"],
  asan: ["-DCMAKE_BUILD_TYPE=Debug", "-DCRESSET_SANITIZE=ON"],
};

/** The two WebAssembly modules by build folder: their files, and what configures them. */
const modules = {
  wasm: { file: "cresset.wasm", options: [] },
  "wasm-threads": { file: "cresset-threads.wasm", options: ["-DCRESSET_WASM_THREADS=ON"] },
};
const emscripten = "/usr/share/emscripten/cmake/Modules/Platform/Emscripten.cmake";

const headersOption = "--node-headers=";

/** Finds the folder with `node_api.h`: that which node-gyp passes, or the running Node's. */
export function nodeHeaders() {
  const version = process.versions.node;
  const places = [
    process.argv
      .find((argument) => argument.startsWith(headersOption))
      ?.slice(headersOption.length),
    join(dirname(dirname(process.execPath)), "include", "node"),
    "/usr/include/node",
    join(homedir(), ".cache", "node-gyp", version, "include", "node"),
  ].filter(Boolean);
  const found = places.find((place) => existsSync(join(place, "node_api.h")));
  if (found) return found;
  throw new StepFailed(`node_api.h not found; looked in ${places.join(", ")}`);
}

/** Configures and builds one native preset in `build/<preset>`. */
export function buildNative(preset = "release") {
  const folder = `build/${preset}`;
  if (!existsSync(join(root, folder, "build.ninja"))) {
    // An addon with sanitizers could not be loaded by a Node without them.
    const headers = preset === "asan" ? "" : nodeHeaders();
    const options = [...presets[preset], `-DNODE_INCLUDE_DIR=${headers}`];
    must("cmake", ["-S", ".", "-B", folder, "-G", "Ninja", ...options]);
  }
  return ninja(folder);
}

/** Builds a configured folder, prints its warnings and returns a note. */
function ninja(folder, env = {}) {
  const jobs = String(availableParallelism());
  const output = must("cmake", ["--build", folder, "--parallel", jobs], { env });
  if (output.includes("no work to do")) return "up to date";
  const warnings = output.split("\n").filter((line) => /\bwarning: /.test(line));
  if (warnings.length > 0) console.log(warnings.join("\n"));
  return folder;
}

/** Builds one WebAssembly module and puts it into `dist/wasm`. */
export function buildWasm(preset) {
  const { file, options } = modules[preset];
  const folder = `build/${preset}`;
  // Debian's em++ finds its JavaScript parser only with this.
  const env = { NODE_PATH: "/usr/share/nodejs" };
  if (!existsSync(join(root, folder, "build.ninja"))) {
    const common = [`-DCMAKE_TOOLCHAIN_FILE=${emscripten}`, "-DCMAKE_BUILD_TYPE=Release"];
    must("cmake", ["-S", ".", "-B", folder, "-G", "Ninja", ...common, ...options], { env });
  }
  const note = ninja(folder, env);
  const [made, placed] = [join(root, folder, file), join(root, "dist", "wasm", file)];
  if (!existsSync(placed) || statSync(placed).mtimeMs < statSync(made).mtimeMs) {
    mkdirSync(join(root, "dist", "wasm"), { recursive: true });
    copyFileSync(made, placed);
  }
  return note;
}

/** Builds both modules, each as a step. */
export function buildWasmModules() {
  for (const preset of Object.keys(modules)) step(preset, () => buildWasm(preset));
}

/** Compiles `js/src` to `dist`, and bundles it for Node. */
export function buildTypeScript() {
  must(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.json"]);
  must(process.execPath, ["tools/bundle.mjs"]);
  return "dist";
}

if (process.argv[1] === import.meta.filename) {
  main(() => {
    const what = process.argv[2] ?? "all";
    if (what === "asan") {
      step("native (asan)", () => buildNative("asan"));
      step("tests (asan)", () => {
        must("ctest", ["--test-dir", "build/asan", "--output-on-failure"]);
      });
      return;
    }
    if (what === "all" || what === "native") step("native build", () => buildNative());
    if (what === "all" || what === "wasm") buildWasmModules();
    if (what === "all" || what === "ts") step("typescript", buildTypeScript);
  });
}
