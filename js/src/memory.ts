// torch.memory: what is held, and the settings of the memory policy.
import { backend } from "./backend.js";

export { record, snapshot, summary } from "./memory_report.js";
export type { SummaryOptions, TensorRecord } from "./memory_report.js";

export interface MemoryStats {
  /** Bytes in live tensors. */
  allocated: number;
  /** Bytes held from the system: live and cached. */
  reserved: number;
  /** Highest `allocated` since resetPeak(). */
  peakAllocated: number;
  /** Blocks handed out, and how many of them came from the cache. */
  allocations: number;
  cacheHits: number;
  /** Bytes that may be allocated between two sweeps. */
  budget: number;
  /** Tensors that JavaScript holds. */
  tensors: number;
  minorCollections: number;
  fullCollections: number;
  /** Bytes allocated since the last sweep. */
  sinceSweep: number;
  /** Bytes of the WebAssembly core's memory, which never shrinks; 0 on the native core. */
  heapBytes: number;
}

// In the order in which a core lists them.
const counters = [
  "allocated",
  "reserved",
  "peakAllocated",
  "allocations",
  "cacheHits",
  "budget",
  "tensors",
  "minorCollections",
  "fullCollections",
  "sinceSweep",
  "heapBytes",
] as const satisfies readonly (keyof MemoryStats)[];

/** Counters of the CPU allocator and of the sweeps. */
export function stats(): MemoryStats {
  const values = backend.stats();
  return Object.fromEntries(
    counters.map((name, i) => [name, values[i] ?? 0]),
  ) as unknown as MemoryStats;
}

/** Frees what is unreachable now; `full` also looks at old objects. */
export function collect(full = true): void {
  backend.collect(full);
}

/** Gives cached blocks back to the system. */
export function emptyCache(): void {
  backend.emptyCache();
}

export function resetPeak(): void {
  backend.resetPeak();
}

/** Sets the least number of bytes between two sweeps (default 64 MiB). */
export function setBudget(bytes: number): void {
  backend.setBudget(bytes);
}

/** Refuses to hold more than this many bytes; 0 removes the limit. */
export function setLimit(bytes: number): void {
  backend.setLimit(bytes);
}
