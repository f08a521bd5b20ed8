// A benchmarked library in a process of its own: answers a row's name with one measurement.
import { createInterface } from "node:readline";

/** One thing to time; a promise it returns is awaited. */
export type Work = () => unknown;

/** Makes a row's work ready: inputs allocated, functions compiled. */
export type Rows = Record<string, () => Work | Promise<Work>>;

/** A measurement lasts at least this long, and one call. */
const sampleNs = 100e6;
const warmUpNs = 1000e6;

async function timed(work: Work, calls: number, finish: () => void): Promise<number> {
  const begin = process.hrtime.bigint();
  for (let i = 0; i < calls; i++) {
    const result = work();
    if (result instanceof Promise) await result;
  }
  finish();
  return Number(process.hrtime.bigint() - begin);
}

/** Calls `work` until it is warm and returns how many calls make one measurement. */
async function warmUp(work: Work, finish: () => void): Promise<number> {
  let calls = 1;
  for (let total = 0; ;) {
    const ns = await timed(work, calls, finish);
    total += ns;
    if (total >= warmUpNs && calls >= 1) return Math.max(1, Math.round((calls * sampleNs) / ns));
    if (ns < sampleNs) calls *= 2;
  }
}

/**
 * Greets with `hello`, then reads row names from standard input and answers each with
 * `{"ns": time of one call}` or `{"error": reason}`. `finish` waits for work that is under way.
 */
export async function serve(
  hello: { version: string; note?: string },
  rows: Rows,
  finish: () => void = () => {},
): Promise<void> {
  const say = (message: object) => process.stdout.write(JSON.stringify(message) + "\n");
  const ready = new Map<string, { work: Work; calls: number }>();
  say({ ...hello, rows: Object.keys(rows) });
  for await (const name of createInterface({ input: process.stdin })) {
    try {
      let row = ready.get(name);
      if (!row) {
        ready.clear();
        const work = await rows[name]!();
        row = { work, calls: await warmUp(work, finish) };
        ready.set(name, row);
      }
      say({ ns: (await timed(row.work, row.calls, finish)) / row.calls });
    } catch (error) {
      say({ error: error instanceof Error ? error.message : String(error) });
    }
  }
}
