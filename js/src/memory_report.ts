// torch.memory.snapshot, summary and record: which tensors live, and where they were made.
import { backend } from "./backend.js";
import { observe } from "./frame.js";
import { stats } from "./memory.js";
import type { Tensor } from "./tensor.js";

/** A live tensor that JavaScript holds. */
export interface TensorRecord {
  id: number;
  dtype: string;
  shape: number[];
  device: string;
  /** Bytes of its elements. */
  bytes: number;
  /** Number of its storage: tensors that share memory have the same. */
  storage: number;
  storageBytes: number;
  requiresGrad: boolean;
  /** Depth of the tidy that will free it; 0 for none. */
  depth: number;
  /** Where it was made, innermost call first; only of tensors made while record() was on. */
  site?: string;
}

/** Stacks of the tensors made while recording, by id. An id is never used twice. */
const sites = new Map<number, { stack?: string }>();
const depthOfStacks = 32;
let checkAt = 0;

function note(made: Tensor): void {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = depthOfStacks;
  const site = new Error();
  Error.stackTraceLimit = limit;
  sites.set(made._id, site);
  if (sites.size > checkAt) forgetFreed();
}

function forgetFreed(): void {
  for (const id of sites.keys()) if (backend.scopeOf(id) < 0) sites.delete(id);
  checkAt = 2 * sites.size + 1024;
}

/**
 * Switches the recording of creation stacks, for snapshot() and summary(). It costs some
 * microseconds per tensor; switching it off forgets what was recorded.
 */
export function record(on = true): void {
  library ||= folderOfThisFile();
  observe(on ? note : null);
  if (!on) sites.clear();
}

/** The folder of this file as stacks name it, which source maps may change. */
let library = "";

function folderOfThisFile(): string {
  const file = /([^\s(@]+):\d+:\d+\)?$/m.exec(new Error().stack ?? "")?.[1] ?? "";
  return file.replace(/[^/\\]*$/, "");
}

// The user's frames of a stack; all of them where a bundler has mixed the files.
function siteOf(id: number): string | undefined {
  const stack = sites.get(id)?.stack;
  if (stack === undefined) return undefined;
  const lines = stack.split("\n").map((line) => line.trim());
  const calls = lines.filter((line) => line !== "" && line !== "Error");
  const theirs = calls.filter((line) => !line.includes(library));
  return (theirs.length > 0 ? theirs : calls).slice(0, 6).join("\n");
}

/** All live tensors that JavaScript holds; those that only a graph holds are not among them. */
export function snapshot(): TensorRecord[] {
  const live = JSON.parse(backend.snapshot()) as TensorRecord[];
  if (sites.size === 0) return live;
  return live.map((t) => {
    const site = siteOf(t.id);
    return site === undefined ? t : { ...t, site };
  });
}

export interface SummaryOptions {
  /** Most lines per table (default 20). */
  limit?: number;
}

interface Group {
  name: string;
  count: number;
  bytes: number;
}

function grouped(live: readonly TensorRecord[], name: (t: TensorRecord) => string): Group[] {
  const groups = new Map<string, Group>();
  for (const t of live) {
    const key = name(t);
    const group = groups.get(key) ?? { name: key, count: 0, bytes: 0 };
    group.count += 1;
    group.bytes += t.bytes;
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => b.bytes - a.bytes || b.count - a.count);
}

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

function size(bytes: number): string {
  const power = bytes < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(bytes) / 10));
  return `${(bytes / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

function table(title: string, groups: readonly Group[], limit: number): string[] {
  const indent = `\n${" ".repeat(23)}`;
  const line = (count: string, bytes: string, name: string) =>
    `  ${count.padStart(7)}  ${bytes.padStart(10)}  ${name.replaceAll("\n", indent)}`;
  const lines = [line("tensors", "bytes", title)];
  for (const g of groups.slice(0, limit)) lines.push(line(String(g.count), size(g.bytes), g.name));
  const rest = groups.slice(limit);
  if (rest.length > 0) {
    const count = rest.reduce((n, g) => n + g.count, 0);
    const bytes = rest.reduce((n, g) => n + g.bytes, 0);
    lines.push(line(String(count), size(bytes), `in ${rest.length} more`));
  }
  return lines;
}

/**
 * A readable account of memory, as PyTorch's memory_summary: live tensors by dtype and shape,
 * counters of the allocator, when the next sweep comes, and (after record()) where what lives was
 * made. The same as data: snapshot() and stats().
 */
export function summary(options: SummaryOptions = {}): string {
  const { limit = 20 } = options;
  const live = snapshot();
  const s = stats();
  const storages = new Map<number, number>();
  for (const t of live) if (t.device === "cpu") storages.set(t.storage, t.storageBytes);
  const held = [...storages.values()].reduce((a, b) => a + b, 0);
  const tidies = live.filter((t) => t.depth > 0).length;
  const hits = s.allocations === 0 ? 0 : Math.round((100 * s.cacheHits) / s.allocations);
  const lines = [
    `memory: ${live.length} tensors hold ${size(held)} in ${storages.size} storages` +
      (tidies > 0 ? `; ${tidies} of them belong to a running tidy` : ""),
    `  allocated   ${size(s.allocated)} (peak ${size(s.peakAllocated)}); the part that no tensor ` +
      `here holds is in graphs, gradients and rounding`,
    `  reserved    ${size(s.reserved)}; ${s.allocations} blocks handed out, ` +
      `${hits}% from the cache`,
    `  sweeps      next after ${size(s.budget)}, ${size(s.sinceSweep)} so far; ` +
      `${s.minorCollections} minor and ${s.fullCollections} full collections`,
    "",
    ...table(
      "dtype and shape",
      grouped(live, (t) => {
        const device = t.device === "cpu" ? "" : ` ${t.device}`;
        return `${t.dtype} [${t.shape.join(", ")}]${device}`;
      }),
      limit,
    ),
  ];
  if (sites.size > 0) {
    const bySite = grouped(live, (t) => t.site ?? "before record()");
    lines.push("", ...table("made at", bySite, limit));
  }
  return lines.join("\n");
}
