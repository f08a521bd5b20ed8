// The process that runs the cases of one file after another; a crash ends it and not the runner.
import { join } from "node:path";
import { lookUp } from "./api.js";
import { OperatorRun, type OperatorCase, type Verdict } from "./cases.js";
import { Fixture } from "./fixtures.js";
import { moduleRun, optimizerRun, randomRun, schedulerRun, type CaseRun } from "./sections.js";

/** A file of recorded cases to run, from case `from` on. */
export interface Task {
  section: Section;
  name: string;
  from: number;
}

export type Section = "ops" | "modules" | "optim" | "schedulers" | "random";

export interface WorkerOptions {
  root: string;
  device: string;
  host: string;
}

/** What the worker tells: how many cases there are, one outcome after another, the end. */
export type Message =
  | { kind: "ready" }
  | { kind: "count"; count: number }
  | { kind: "verdict"; index: number; verdict: Verdict }
  | { kind: "done" };

/** Resolves when the message is with the operating system, where a crash cannot lose it. */
function tell(message: Message): Promise<void> {
  return new Promise((resolve) => process.send!(message, () => resolve()));
}

function open({ root, device }: WorkerOptions, { section, name }: Task): CaseRun {
  const path = join(root, section, `${name}.safetensors`);
  switch (section) {
    case "ops": {
      const fixture = new Fixture<OperatorCase>(path);
      const operator = new OperatorRun(fixture, device);
      return { count: fixture.cases.length, run: (index) => operator.run(index) };
    }
    case "modules":
      return moduleRun(path, device);
    case "optim":
      return optimizerRun(path, device);
    case "schedulers":
      return schedulerRun(root);
    case "random":
      return randomRun(root);
  }
}

async function work(options: WorkerOptions, task: Task): Promise<void> {
  const run = open(options, task);
  await tell({ kind: "count", count: run.count });
  for (let index = task.from; index < run.count; index++) {
    const verdict = run.run(index);
    // A kernel's fault ends the process's use of the GPU: later cases need another process.
    if (/CUDA error 7\d\d/.test(verdict.text ?? "")) {
      console.error(`${task.name}[${index}]: ${verdict.text}`);
      process.exit(3);
    }
    await tell({ kind: "verdict", index, verdict });
  }
  await tell({ kind: "done" });
}

/** PyTorch's recordings are of the CPU: TF32, on by default in convolutions, is not compared. */
function exactConvolutions(): void {
  const cudnn = lookUp("backends.cudnn") as { allowTf32?: boolean } | undefined;
  if (cudnn) cudnn.allowTf32 = false;
}

const options = JSON.parse(process.argv[2]!) as WorkerOptions;
const init = lookUp("init");
if (typeof init === "function") await init({ host: options.host });
if (options.device !== "cpu") exactConvolutions();
process.on("message", (task: Task) => void work(options, task));
process.on("disconnect", () => process.exit());
await tell({ kind: "ready" });
