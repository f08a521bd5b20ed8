// Counts the outcomes by operator; writes totals, the JSON file and the list of passing ones.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { Status, Verdict } from "./cases.js";
import type { FileResult } from "./pool.js";
import type { Section } from "./worker.js";

interface Count {
  passed: number;
  total: number;
}

/** One operator, module or optimizer: it passes when all its cases do. */
export interface Item extends Count {
  status: Status;
  firstDifference?: string;
}

export interface Summary {
  ops: Count;
  cases: Count;
  mustThrow: Count;
  notImplemented: number;
  wrong: number;
  operators: Record<string, Item>;
}

function countOf(verdicts: Verdict[]): Count {
  const passed = verdicts.filter(({ status }) => status === "passed").length;
  return { passed, total: verdicts.length };
}

function itemOf({ verdicts }: FileResult): Item {
  const find = (status: Status) => verdicts.findIndex((verdict) => verdict.status === status);
  for (const status of ["wrong", "notImplemented"] as const) {
    const index = find(status);
    if (index < 0) continue;
    const firstDifference = `case ${index}, ${verdicts[index]!.text}`;
    return { ...countOf(verdicts), status, firstDifference };
  }
  return { ...countOf(verdicts), status: "passed" };
}

/** Counts the results of one section. */
export function summarize(results: FileResult[]): Summary {
  const operators = Object.fromEntries(results.map((result) => [result.name, itemOf(result)]));
  const items = Object.values(operators);
  const verdicts = results.flatMap((result) => result.verdicts);
  const having = (status: Status) => items.filter((item) => item.status === status).length;
  return {
    ops: { passed: having("passed"), total: items.length },
    cases: countOf(verdicts),
    mustThrow: countOf(verdicts.filter(({ mustThrow }) => mustThrow)),
    notImplemented: having("notImplemented"),
    wrong: verdicts.filter(({ status }) => status === "wrong").length,
    operators,
  };
}

/** One line for each operator with a wrong case, then the names of those that are missing. */
export function printDifferences(summary: Summary): void {
  const entries = Object.entries(summary.operators);
  for (const [name, { status, firstDifference }] of entries)
    if (status === "wrong") console.log(`wrong ${name}: ${firstDifference}`);
  const missing = entries.filter(([, { status }]) => status === "notImplemented");
  if (missing.length > 0)
    console.log(`not implemented: ${missing.map(([name]) => name).join(" ")}`);
}

/** The line of totals of a section. */
export function totals(section: Section, summary: Summary): string {
  const of = ({ passed, total }: Count) => `${passed}/${total}`;
  const { ops, cases, mustThrow, notImplemented, wrong } = summary;
  if (section !== "ops") {
    const head = `${section} ${of(ops)}, cases ${of(cases)}`;
    return `${head}, not implemented ${notImplemented}, wrong ${wrong}`;
  }
  const head = `ops ${of(ops)}, cases ${of(cases)}, must-throw ${of(mustThrow)}`;
  return `${head}, not implemented ${notImplemented} ops, wrong ${wrong}`;
}

/** The operators that have passed before, one a line. */
export class PassingList {
  private readonly names: Set<string>;

  constructor(private readonly path: string | URL) {
    const text = existsSync(path) ? readFileSync(path, "utf8") : "";
    this.names = new Set(text.split("\n").filter(Boolean));
  }

  /** Those that were run and no longer pass. */
  dropped({ operators }: Summary): string[] {
    return [...this.names].filter((name) => (operators[name]?.status ?? "passed") !== "passed");
  }

  /** Adds the operators that pass now; none is ever taken away. */
  update({ operators }: Summary): void {
    for (const [name, { status }] of Object.entries(operators))
      if (status === "passed") this.names.add(name);
    writeFileSync(this.path, [...this.names].sort().join("\n") + "\n");
  }
}
