// Spreads the files over a few worker processes and starts a new one where a worker dies.
import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Verdict } from "./cases.js";
import type { Message, Section, Task, WorkerOptions } from "./worker.js";

/** The outcomes of one file's cases, in order. */
export interface FileResult {
  section: Section;
  name: string;
  verdicts: Verdict[];
}

const workerFile = fileURLToPath(new URL("worker.ts", import.meta.url));

/** A case that takes longer than this counts as one that never ends. */
const caseSeconds = 60;

/** A file that ends so many processes is not run further. */
const deathsOfAFile = 3;

function giveUp({ verdicts }: FileResult, count: number): void {
  const text = `not run, because ${deathsOfAFile} cases before it ended the process`;
  while (verdicts.length < count) verdicts.push({ status: "wrong", text });
}

/** Runs all files with `processes` workers; results come in the order of `files`. */
export async function runFiles(
  files: { section: Section; name: string }[],
  options: WorkerOptions,
  processes: number,
): Promise<FileResult[]> {
  const results = files.map((file) => ({ ...file, verdicts: [] as Verdict[] }));
  const queue = [...results];
  const lanes = Array.from({ length: Math.min(processes, queue.length) }, async () => {
    let worker: Worker | undefined;
    for (let result = queue.shift(); result; result = queue.shift()) {
      let count = Infinity;
      for (let deaths = 0; result.verdicts.length < count;) {
        worker ??= await Worker.start(options);
        count = await worker.run(result, count);
        if (!worker.ended) continue;
        worker = undefined;
        if (++deaths === deathsOfAFile) giveUp(result, count);
      }
    }
    worker?.stop();
  });
  await Promise.all(lanes);
  return results;
}

/** One worker process. */
class Worker {
  ended = false;
  private constructor(private readonly child: ChildProcess) {}

  static async start(options: WorkerOptions): Promise<Worker> {
    const threads = process.env["OMP_NUM_THREADS"] ?? "1";
    const env = { ...process.env, OMP_NUM_THREADS: threads, CRESSET_HOST: options.host };
    const child = fork(workerFile, [JSON.stringify(options)], { env });
    const worker = new Worker(child);
    const ready = await worker.listen((message) => message.kind === "ready");
    if (!ready) throw new Error("parity: the worker process ended before it was ready");
    return worker;
  }

  /**
   * Runs a file from its first case without a verdict, and returns the number of its cases. When
   * the process dies the case it was at becomes a wrong one.
   */
  async run(result: FileResult, known: number): Promise<number> {
    let count = known;
    const { section, name, verdicts } = result;
    const task: Task = { section, name, from: verdicts.length };
    const finished = this.listen((message) => {
      if (message.kind === "count") count = message.count;
      if (message.kind === "verdict") verdicts.push(message.verdict);
      return message.kind === "done";
    });
    this.child.send(task);
    if (await finished) return count;
    verdicts.push({ status: "wrong", text: `the process ended: ${this.reason()}` });
    if (count === Infinity) throw new Error(`parity: cannot read ${section}/${name}`);
    return count;
  }

  stop(): void {
    this.child.disconnect();
  }

  /** Hears messages until one is the last; false when the process ended before that. */
  private listen(isLast: (message: Message) => boolean): Promise<boolean> {
    const { child } = this;
    return new Promise((resolve) => {
      const kill = () => child.kill("SIGKILL");
      let timer = setTimeout(kill, caseSeconds * 1000);
      const hear = (message: Message) => {
        clearTimeout(timer);
        if (isLast(message)) finish(true);
        else timer = setTimeout(kill, caseSeconds * 1000);
      };
      const close = () => {
        this.ended = true;
        finish(false);
      };
      const finish = (complete: boolean) => {
        clearTimeout(timer);
        child.off("message", hear).off("close", close);
        resolve(complete);
      };
      child.on("message", hear).on("close", close);
    });
  }

  private reason(): string {
    const { signalCode, exitCode } = this.child;
    if (signalCode === "SIGKILL") return `no answer within ${caseSeconds} s`;
    return signalCode ?? `exit code ${exitCode}`;
  }
}
