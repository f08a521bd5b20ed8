// `npm run parity`: compares Cresset with PyTorch's recorded results.
// Options: --fixtures DIR|TAR, --device cpu|cuda, --host native|wasm, --only REGEX, --json FILE,
// --section ops|modules|optim|schedulers|random|all, --update (adds to passing.txt).
import { existsSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { fixtureNames, openRecordings } from "./fixtures.js";
import { runFiles, type FileResult } from "./pool.js";
import { PassingList, printDifferences, summarize, totals } from "./report.js";
import type { Section } from "./worker.js";

const sections: Section[] = ["modules", "optim", "schedulers", "random", "ops"];

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));

const { values } = parseArgs({
  options: {
    fixtures: { type: "string", default: here("pytorch-2.11.tar.xz") },
    device: { type: "string", default: "cpu" },
    host: { type: "string", default: "native" },
    only: { type: "string", default: "" },
    section: { type: "string", default: "ops" },
    json: { type: "string" },
    update: { type: "boolean", default: false },
  },
});

/** The files of a section below `root` whose names fit `--only`. */
function filesOf(section: Section, root: string): { section: Section; name: string }[] {
  const single = { schedulers: "lr_schedulers.json", random: "random.safetensors" };
  if (section in single) {
    const file = single[section as keyof typeof single];
    return existsSync(join(root, file)) ? [{ section, name: section }] : [];
  }
  const only = new RegExp(values.only);
  const names = fixtureNames(join(root, section)).filter((name) => only.test(name));
  return names.map((name) => ({ section, name }));
}

async function runSections(wanted: Section[]): Promise<Map<Section, FileResult[]>> {
  const { root, close } = openRecordings(values.fixtures);
  const { device, host } = values;
  process.once("SIGINT", () => {
    close();
    process.exit(130);
  });
  try {
    const files = wanted.flatMap((section) => filesOf(section, root));
    const processes = Math.min(availableParallelism(), 4);
    const results = await runFiles(files, { root, device, host }, processes);
    const ofSection = (section: Section) => results.filter((file) => file.section === section);
    return new Map(wanted.map((section) => [section, ofSection(section)]));
  } finally {
    close();
  }
}

const all = values.section === "all";
const wanted = sections.filter((section) => all || section === values.section);
if (wanted.length === 0)
  throw new Error(`--section: expected one of ${sections.join(", ")} or all`);

/** Every device and host has a list of its own. */
function listName(): string {
  if (values.device !== "cpu") return `passing.${values.device}.txt`;
  return values.host === "native" ? "passing.txt" : `passing.${values.host}.txt`;
}

let failed = 0;
const report: Record<string, unknown> = {};
const list = new PassingList(here(listName()));
for (const [section, results] of await runSections(wanted)) {
  const summary = summarize(results);
  printDifferences(summary);
  const items = Object.values(summary.operators);
  const wrongItems = items.filter(({ status }) => status === "wrong").length;
  failed += wrongItems;
  if (section === "ops") {
    const dropped = list.dropped(summary);
    for (const name of dropped)
      console.log(`${name} passed before: ${summary.operators[name]!.firstDifference}`);
    const isWrong = (name: string) => summary.operators[name]!.status === "wrong";
    failed += dropped.filter((name) => !isWrong(name)).length;
    if (values.update) list.update(summary);
    console.log(`${summary.ops.passed} passed, ${failed} failed`);
  }
  console.log(totals(section, summary));
  if (section === "ops") Object.assign(report, summary);
  else report[section] = summary;
}
if (values.json) writeFileSync(values.json, JSON.stringify(report, null, 1) + "\n");
if (failed > 0) process.exitCode = 1;
