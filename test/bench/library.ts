// Starts a benchmarked library in its own process and asks it for measurements, one at a time.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** A library to measure: the command that serves its rows. */
export interface Program {
  name: string;
  command: string;
  args: string[];
  env?: Record<string, string>;
  /** Makes the program ready to start; gives the reason where that is not possible. */
  prepare?: () => string | undefined;
}

/** A started library. */
export class Library {
  private constructor(
    readonly name: string,
    readonly version: string,
    private readonly rows: ReadonlySet<string>,
    private readonly child: ChildProcess,
    private readonly lines: AsyncIterator<string>,
  ) {}

  /** Starts a program; prints its version, or why it cannot be had, and gives undefined then. */
  static async start({ name, command, args, env, prepare }: Program): Promise<Library | undefined> {
    const reason = prepare?.();
    if (reason) return void console.log(`${name}: ${reason}`);
    const child = spawn(command, args, {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, ...env },
    });
    const broken = new Promise<never>((_, reject) => child.on("error", reject));
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    try {
      const { value, done } = await Promise.race([lines.next(), broken]);
      if (done) return void console.log(`${name}: ended before it was ready`);
      const { version, note, rows } = JSON.parse(value);
      console.log(`${name}: ${[version, note].filter(Boolean).join(", ")}`);
      return new Library(name, version, new Set<string>(rows), child, lines);
    } catch (error) {
      return void console.log(`${name}: ${(error as Error).message}`);
    }
  }

  has(row: string): boolean {
    return this.rows.has(row);
  }

  /** The time of one call of a row in nanoseconds; throws with the library's reason. */
  async measure(row: string): Promise<number> {
    this.child.stdin!.write(row + "\n");
    const { value, done } = await this.lines.next();
    if (done) throw new Error(`${this.name} ended while it ran ${row}`);
    const { ns, error } = JSON.parse(value);
    if (error) throw new Error(error);
    return ns;
  }

  /** Moves the library's main thread to these cores ("3", "0-15"), where the system can. */
  runOn(cores: string): void {
    spawnSync("taskset", ["-cp", cores, `${this.child.pid}`], { stdio: "ignore" });
  }

  stop(): void {
    this.child.stdin!.end();
  }
}

/** Installs the npm peers beside their lock file the first time they are wanted. */
export function npmPeers(): string | undefined {
  const folder = here("peers");
  if (existsSync(here("peers/node_modules/@jax-js"))) return undefined;
  console.log(`npm ci in ${folder}`);
  const { status } = spawnSync("npm", ["ci"], { cwd: folder, stdio: "inherit" });
  return status === 0 ? undefined : "npm ci failed";
}

const packages = ["python3-torch", "libopenblas0-openmp"];

/** Debian's PyTorch, installed where the benchmark may. */
function pytorch(): string | undefined {
  const check = ["-c", "import torch"];
  if (spawnSync("/usr/bin/python3", check).status === 0) return chosenBlas();
  const args = ["install", "-y", "--no-install-recommends", ...packages];
  if (process.getuid?.() !== 0) return `not installed; run: sudo apt-get ${args.join(" ")}`;
  const { status } = spawnSync("apt-get", args, { stdio: "inherit" });
  return status === 0 ? chosenBlas() : "apt-get failed";
}

/** Debian's PyTorch is several times slower with the reference BLAS: say so. */
function chosenBlas(): undefined {
  const query = ["--query", "libblas.so.3-x86_64-linux-gnu"];
  const { stdout } = spawnSync("update-alternatives", query, { encoding: "utf8" });
  const value = /^Value: (.*)$/m.exec(stdout ?? "")?.[1];
  if (!value?.includes("openblas-openmp"))
    console.log(`PyTorch: libopenblas0-openmp is not the active BLAS (${value ?? "unknown"})`);
}

const tsx = (file: string) => ["--import", "tsx", here(file)];

const rawOneDnn = here("../../build/release/raw_onednn");

const rawCuda = here("../../build/release/raw_cuda");

/** The programs by short name. */
export const programs = {
  ours: { name: "Cresset", command: process.execPath, args: tsx("ours.ts") },
  wasm: {
    name: "Cresset wasm",
    command: process.execPath,
    args: tsx("ours.ts"),
    env: { CRESSET_HOST: "wasm", OMP_NUM_THREADS: "1" },
  },
  wasmThreads: {
    name: "Cresset wasm, 2 threads",
    command: process.execPath,
    args: tsx("ours.ts"),
    env: { CRESSET_HOST: "wasm", OMP_NUM_THREADS: "2" },
  },
  jax: {
    name: "jax-js",
    command: process.execPath,
    args: tsx("peers/jax.mjs"),
    prepare: npmPeers,
  },
  tfjs: {
    name: "tfjs-wasm",
    command: process.execPath,
    args: tsx("peers/tfjs.mjs"),
    prepare: npmPeers,
  },
  tfjsCpu: {
    name: "tfjs-cpu",
    command: process.execPath,
    args: tsx("peers/tfjs.mjs"),
    env: { TFJS_BACKEND: "cpu" },
    prepare: npmPeers,
  },
  pytorch: {
    name: "PyTorch",
    command: "/usr/bin/python3",
    args: [here("peers/torch_bench.py")],
    prepare: pytorch,
  },
  oursCuda: { name: "Cresset", command: process.execPath, args: tsx("ours_cuda.ts") },
  pytorchCuda: {
    name: "PyTorch",
    command: "python3",
    args: [here("peers/torch_cuda.py")],
    prepare: () =>
      spawnSync("python3", ["-c", "import torch; torch.cuda.current_device()"]).status === 0
        ? undefined
        : "python3 has no PyTorch that sees a GPU",
  },
  cuda: {
    name: "CUDA",
    command: rawCuda,
    args: [],
    prepare: () => (existsSync(rawCuda) ? undefined : `${rawCuda} is not built`),
  },
  oneDnn: {
    name: "oneDNN",
    command: rawOneDnn,
    args: [],
    prepare: () => (existsSync(rawOneDnn) ? undefined : `${rawOneDnn} is not built`),
  },
} satisfies Record<string, Program>;

export type ProgramName = keyof typeof programs;
