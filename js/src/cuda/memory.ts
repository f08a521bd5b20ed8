// torch.cuda's memory: counters, snapshots, limits, settings, pools and other allocators.
import * as ops from "../ops.gen.js";
import { ascii, readJson, readText, scoped, Scope } from "./common.js";
import { deviceIndex, exactIndex, isAvailable, type CudaDevice } from "./device.js";

/**
 * Counters by PyTorch's names, such as "allocated_bytes.all.current": kind, pool (all, small_pool,
 * large_pool), and current, peak, allocated or freed.
 */
export type MemoryStats = Record<string, number>;

/** All counters of a device's allocator; empty where CUDA cannot be used. */
export function memoryStats(device: CudaDevice = null): MemoryStats {
  if (!isAvailable()) return {};
  return readJson(ops._cudaMemoryStats(deviceIndex(device, "memoryStats")));
}

const counter = (key: string) => (device: CudaDevice | undefined) =>
  memoryStats(device ?? null)[key] ?? 0;
const allocated = counter("allocated_bytes.all.current");
const allocatedPeak = counter("allocated_bytes.all.peak");
const reserved = counter("reserved_bytes.all.current");
const reservedPeak = counter("reserved_bytes.all.peak");

/** Bytes in live tensors. */
export function memoryAllocated(device: CudaDevice = null): number {
  return allocated(device);
}
/** The most bytes in live tensors since the start or resetPeakMemoryStats(). */
export function maxMemoryAllocated(device: CudaDevice = null): number {
  return allocatedPeak(device);
}
/** Bytes held from the driver: in live tensors, and cached for new ones. */
export function memoryReserved(device: CudaDevice = null): number {
  return reserved(device);
}
/** The most bytes held from the driver since the start or resetPeakMemoryStats(). */
export function maxMemoryReserved(device: CudaDevice = null): number {
  return reservedPeak(device);
}
/** Starts the peaks over. */
export function resetPeakMemoryStats(device: CudaDevice = null): void {
  ops._cudaResetMemoryStats(deviceIndex(device, "resetPeakMemoryStats"), true);
}
/** Starts the sums over: allocated, freed, and the counts of retries and errors. */
export function resetAccumulatedMemoryStats(device: CudaDevice = null): void {
  ops._cudaResetMemoryStats(deviceIndex(device, "resetAccumulatedMemoryStats"), false);
}

/** One piece of a segment. */
export interface MemoryBlock {
  address: number;
  size: number;
  requested_size: number;
  state: "active_allocated" | "active_awaiting_free" | "inactive";
}
/** What was asked from the driver at once; the names are PyTorch's. */
export interface MemorySegment {
  device: number;
  address: number;
  total_size: number;
  allocated_size: number;
  active_size: number;
  requested_size: number;
  stream: number;
  segment_type: "small" | "large";
  segment_pool_id: [number, number];
  is_expandable: boolean;
  blocks: MemoryBlock[];
}

/** Every segment and block of every device. */
export function memorySnapshot(): MemorySegment[] {
  return isAvailable() ? readJson(ops._cudaMemorySnapshot()) : [];
}

/** Free and total bytes of a device, for all processes together. */
export function memGetInfo(device: CudaDevice = null): [number, number] {
  return ops._cudaMemoryInfo(deviceIndex(device, "memGetInfo")) as [number, number];
}

/** The counters as a table to read. */
export function memorySummary(device: CudaDevice = null): string {
  const index = exactIndex(device, "memorySummary");
  const stats = memoryStats(index);
  const mib = (key: string) => `${((stats[key] ?? 0) / 2 ** 20).toFixed(1)} MiB`.padStart(14);
  const rows = [
    ["allocated", "allocated_bytes"],
    ["active", "active_bytes"],
    ["requested", "requested_bytes"],
    ["reserved", "reserved_bytes"],
    ["inactive splits", "inactive_split_bytes"],
  ].map(([name, key]) => {
    const columns = ["current", "peak", "allocated", "freed"].map((c) => mib(`${key}.all.${c}`));
    return `${name!.padEnd(16)}${columns.join("")}`;
  });
  const head = `${"".padEnd(16)}${["current", "peak", "in all", "freed"]
    .map((c) => c.padStart(14))
    .join("")}`;
  const calls = (stats["num_device_alloc"] ?? 0) + (stats["num_device_free"] ?? 0);
  const { num_alloc_retries: retries, num_ooms: errors } = stats;
  const counts = `retries ${retries}, errors ${errors}, driver calls ${calls}`;
  return [`cuda:${index}`, head, ...rows, counts].join("\n");
}

/** Gives cached memory back to the driver, for other processes. */
export function emptyCache(): void {
  ops._cudaEmptyCache();
}

/** At most this part of the device's memory is used; more is an OutOfMemoryError. */
export function setPerProcessMemoryFraction(fraction: number, device: CudaDevice = null): void {
  ops._cudaSetMemoryFraction(deviceIndex(device, "setPerProcessMemoryFraction"), fraction);
}

/**
 * Settings of the allocator in PyTorch's grammar, as in the variable CRESSET_ALLOC_CONF:
 * "max_split_size_mb:128,garbage_collection_threshold:0.8,expandable_segments:True".
 */
export function setAllocatorOptions(options: string): void {
  ops._cudaSetAllocatorOptions(ascii("setAllocatorOptions", options));
}

/** "native", "cudaMallocAsync" or "pluggable". */
export function getAllocatorBackend(): string {
  return readText(ops._cudaAllocatorBackend());
}

// ---- allocators of the user

const pathBytes = (path: string) => [...new TextEncoder().encode(path)];

/**
 * An allocator in a shared library, with two C functions:
 * `void* alloc(size_t bytes, int device, cudaStream_t stream)` and
 * `void free(void* data, size_t bytes, int device, cudaStream_t stream)`.
 */
export class CUDAPluggableAllocator {
  constructor(
    readonly path: string,
    readonly allocFnName: string,
    readonly freeFnName: string,
  ) {
    ascii("CUDAPluggableAllocator", allocFnName + freeFnName);
  }
}

/** Takes another allocator for all CUDA memory; only before any was used. */
export function changeCurrentAllocator(allocator: CUDAPluggableAllocator): void {
  const { path, allocFnName, freeFnName } = allocator;
  ops._cudaUseAllocator(pathBytes(path), allocFnName, freeFnName);
}

const registry = new FinalizationRegistry<number>((id) => ops._cudaPoolDestroy(id));

/** Memory apart from the rest, optionally from an allocator of the user; see useMemPool(). */
export class MemPool {
  /** Number of the pool in the core; [0, number] is its id in snapshots. */
  readonly _id: number;

  constructor(allocator?: CUDAPluggableAllocator | null) {
    const { path = "", allocFnName = "", freeFnName = "" } = allocator ?? {};
    this._id = ops._cudaPoolCreate(pathBytes(path), allocFnName, freeFnName);
    registry.register(this, this._id, this);
  }
  get id(): [number, number] {
    return [0, this._id];
  }
  /** The segments of this pool. */
  snapshot(): MemorySegment[] {
    return memorySnapshot().filter((s) => s.segment_pool_id[1] === this._id);
  }
  /** Lets the pool go; its memory goes back when the tensors in it are gone. */
  dispose(): void {
    registry.unregister(this);
    ops._cudaPoolDestroy(this._id);
  }
  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** Tensors that `fn` makes lie in the pool; without `fn`, a guard for `using`. */
export function useMemPool(pool: MemPool): Scope;
export function useMemPool<R>(pool: MemPool, fn: () => R, device?: CudaDevice): R;
export function useMemPool<R>(pool: MemPool, fn?: () => R, device: CudaDevice = null): R | Scope {
  const index = exactIndex(device, "useMemPool");
  ops._cudaPoolBegin(pool._id, index);
  const leave = () => ops._cudaPoolEnd(pool._id, index);
  return fn ? scoped("useMemPool", fn, leave) : new Scope(leave);
}
