// `npm run bench -- NAME [--only REGEX] [--json FILE]`: times Cresset and its peers in turn and
// prints a table; `--only` picks rows.
// NAME is one of overhead, cpu-ops, train, memory, wasm ...; without it the names are listed.
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { tables, type Result, type RowPlan, type TablePlan } from "./benchmarks.js";
import { Library, programs } from "./library.js";
import { runCuda } from "./cuda.js";
import { runMemory } from "./memory.js";

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Idle threads of the library that was measured before spin for some milliseconds more. */
const settleMs = 100;

/** A row whose calls are long ends early, after at least three rounds. */
const rowMs = 12_000;

/** One row's nanoseconds by library and round; the libraries take turns, in either order. */
async function measureRow(
  { name, id = name, rounds, sameCore, noPause }: RowPlan & { rounds: number },
  libraries: Library[],
): Promise<Map<Library, number[]>> {
  const samples = new Map<Library, number[]>();
  const able = libraries.filter((library) => library.has(id));
  const begin = performance.now();
  const cores = availableParallelism();
  for (let round = 0; round < rounds; round++) {
    if (round >= 3 && performance.now() - begin > rowMs) break;
    if (sameCore) for (const library of able) library.runOn(`${round % cores}`);
    // Each is the first in every other round: who comes second may find a warmer chip.
    for (const library of round % 2 ? able.toReversed() : [...able]) {
      try {
        if (!noPause) await sleep(settleMs);
        const list = samples.get(library) ?? [];
        samples.set(library, [...list, await library.measure(id)]);
      } catch (error) {
        console.log(`${library.name}: ${id}: ${(error as Error).message}`);
        samples.delete(library);
        able.splice(able.indexOf(library), 1);
      }
    }
  }
  if (sameCore) for (const library of libraries) library.runOn(`0-${cores - 1}`);
  return samples;
}

/**
 * How many times our time a peer takes: the median over the rounds, each compared by itself, so
 * that a machine that is slower in some rounds does not decide.
 */
function ratioOf(theirs: number[], ours: number[]): number {
  return median(theirs.map((time, round) => time / ours[round]!));
}

/** One result for each peer that has the row, or one without a peer. */
async function rowResults(plan: TablePlan, row: RowPlan, libraries: Library[]): Promise<Result[]> {
  const { name, unit = plan.unit, per = 1 } = row;
  const scale = { ns: 1, us: 1e-3, ms: 1e-6 }[unit] / per;
  const samples = await measureRow({ ...plan, ...row }, libraries);
  const times = [...samples].map(([library, rounds]) => ({
    peer: library.name,
    time: median(rounds) * scale,
    rounds,
  }));
  const ours = times.find(({ peer }) => peer === programs[plan.subject ?? "ours"].name);
  if (!ours) return [];
  const bound = times.find(({ peer }) => row.limitBy && peer === programs[row.limitBy].name);
  const boundTime = bound && ours.time * ratioOf(bound.rounds, ours.rounds);
  const limit = row.limit ?? (boundTime && boundTime * (row.limitTimes ?? 1));
  const result: Result = {
    name,
    unit,
    value: ours.time,
    ...(limit === undefined ? {} : { limit }),
  };
  const peers = times.filter((time) => time !== ours);
  if (peers.length === 0) return [result];
  return peers.map(({ peer, time, rounds }) => ({
    ...result,
    peer,
    peerValue: time,
    ratio: ratioOf(rounds, ours.rounds),
  }));
}

async function runTable(plan: TablePlan): Promise<Result[]> {
  const names = [plan.subject ?? "ours", ...plan.peers] as const;
  const started: Library[] = [];
  try {
    for (const name of names) {
      const library = await Library.start(programs[name]);
      if (library) started.push(library);
    }
    const results: Result[] = [];
    for (const row of plan.rows.filter(({ name }) => wanted.test(name)))
      results.push(...(await rowResults(plan, row, started)));
    return results;
  } finally {
    for (const library of started) library.stop();
  }
}

function format(value: number | undefined): string {
  if (value === undefined) return "";
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function printTable(results: Result[]): void {
  const head = ["row", "unit", "Cresset", "peer", "its value", "ratio", "limit"];
  const lines = results.map((row) => [
    row.name,
    row.unit,
    format(row.value),
    row.peer ?? "",
    format(row.peerValue),
    format(row.ratio),
    format(row.limit),
  ]);
  const widths = head.map((title, i) =>
    Math.max(title.length, ...lines.map((line) => line[i]!.length)),
  );
  const isText = (i: number) => [0, 1, 3].includes(i);
  const pad = (cell: string, i: number) =>
    isText(i) ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!);
  for (const line of [head, ...lines]) console.log(line.map(pad).join("  ").trimEnd());
}

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "string" }, only: { type: "string", default: "" } },
});
const wanted = new RegExp(values.only);

async function measure(name: string): Promise<Result[]> {
  if (name === "memory") return runMemory();
  if (name === "cuda") return [...(await runTable(tables["cuda"]!)), ...runCuda()];
  if (name !== "wasm") return runTable(tables[name]!);
  const inNode = [
    ...(await runTable(tables["wasm"]!)),
    ...(await runTable(tables["wasm-threads"]!)),
  ];
  // Its bundler is not part of the portable archive.
  const { runChromium, wasmSizes } = await import("./wasm.js");
  return [...inNode, ...(await runChromium()), ...(await wasmSizes())];
}

const known = [...Object.keys(tables), "memory"];
const [name] = positionals;
if (!name || !known.includes(name)) {
  console.log(
    `npm run bench -- NAME [--only REGEX] [--json FILE], where NAME is one of ${known.join(", ")}`,
  );
  process.exitCode = name ? 1 : 0;
} else {
  const results = await measure(name);
  printTable(results);
  if (values.json) writeFileSync(values.json, JSON.stringify(results, null, 1) + "\n");
  if (results.length === 0) process.exitCode = 1;
}
