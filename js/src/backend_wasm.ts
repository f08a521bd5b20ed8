// The WebAssembly module as a core: calls, memory policy and errors, on any JavaScript host.
import type { Backend } from "./backend.js";
import { errorFor, OutOfMemoryError } from "./errors.js";
import type { Core, CoreExports } from "./wasm/module.js";
import type { Threads } from "./wasm/threads.js";

/** Makes the host collect garbage at once; afterwards dead objects' WeakRefs are empty. */
export type CollectNow = () => void;

const defaultBudget = 128 * 1024 * 1024;
/** Handles that may come up between two sweeps. */
const mostYoung = 65536;
/** Handles of a scope that no WeakRef watches. */
const mostUnwatched = 4096;
/** Room for the counters of cresset_memory_stats, and for one length. */
const scratchBytes = 6 * 8;

/** Whether collectNow really empties WeakRefs: not every host does so within a job. */
function works(collectNow: CollectNow): boolean {
  const probe = (() => new WeakRef({}))();
  collectNow();
  return probe.deref() === undefined;
}

export class WasmBackend implements Backend {
  /** Objects that hold a handle, and their handles at the same positions. */
  private readonly holders: WeakRef<object>[] = [];
  private readonly ids: number[] = [];
  /** How many of them the last sweep left. */
  private survivors = 0;
  /** Of each open scope: its handles that no WeakRef watches. */
  private readonly scopes: number[] = [];
  private view = new Float64Array(0);
  /** The two halves of the core's count of bytes since the last sweep. */
  private counter = new Uint32Array(2);
  private frameAt = 0;
  private frameLength = 0;
  private moved: (frame: Float64Array) => void = () => {};
  private floor = defaultBudget;
  private budget = defaultBudget;
  private collections = 0;
  private collecting = false;
  private tried = false;
  private lastSweep = performance.now();
  private sweepMs = 5;
  private readonly invoke: CoreExports["cresset_call"];
  private readonly env: number;
  private readonly scratch: number;
  private readonly garbage: FinalizationRegistry<null>;

  /** Without `collectNow`, dead tensors are found after the host collected garbage by itself. */
  constructor(
    private readonly core: Core,
    private readonly helpers: Threads | null,
    private collectNow: CollectNow | null,
  ) {
    const { exports } = core;
    exports.emscripten_tls_init?.();
    exports.__wasm_call_ctors();
    exports.cresset_module_start();
    this.invoke = exports.cresset_call;
    this.env = exports.cresset_env_new();
    this.scratch = exports.malloc(scratchBytes) >>> 0;
    this.grown();
    this.garbage = new FinalizationRegistry(() => this.sawCollection());
    this.garbage.register({}, null);
  }

  // ---- calls

  call(op: number): void {
    const status = this.invoke(this.env, op, this.frameAt);
    if (status !== 0) this.fail(status);
    if (this.collectNow) this.poll(this.collectNow, this.sinceSweep());
  }

  callInto(op: number, out: object): void {
    const status = this.invoke(this.env, op, this.frameAt);
    if (status !== 0) this.fail(status);
    const bytes = this.sinceSweep();
    if (this.leftToScope(bytes)) return;
    this.watch(this.view[1]!, out);
    if (this.collectNow) this.poll(this.collectNow, bytes);
  }

  adopt(id: number, holder: object): void {
    const scoped = this.core.exports.cresset_scope_of(this.env, id) > 0;
    if (!scoped || !this.leftToScope(this.sinceSweep())) this.watch(id, holder);
  }

  private sinceSweep(): number {
    return this.counter[0]! + this.counter[1]! * 2 ** 32;
  }

  private watch(id: number, holder: object): void {
    this.holders.push(new WeakRef(holder));
    this.ids.push(id);
  }

  free(id: number): void {
    this.core.exports.cresset_free(this.env, id);
  }

  // ---- scopes

  /** The first handles of a scope need no WeakRef: its end frees them. */
  private leftToScope(bytes: number): boolean {
    const at = this.scopes.length - 1;
    if (at < 0 || this.scopes[at] === mostUnwatched) return false;
    const small = bytes < this.floor / 4;
    this.scopes[at] = small ? this.scopes[at]! + 1 : mostUnwatched;
    return true;
  }

  beginScope(): number {
    this.scopes.push(0);
    return this.core.exports.cresset_scope_begin(this.env);
  }
  endScope(depth: number): void {
    this.core.exports.cresset_scope_end(this.env, depth, this.frameAt);
    this.scopes.length = depth - 1;
  }
  keep(): void {
    this.core.exports.cresset_keep(this.env, this.frameAt);
  }
  scopeIds(depth: number): number[] {
    const at = this.core.exports.cresset_scope_ids(this.env, depth, this.scratch) >>> 0;
    const count = this.lengthAtScratch();
    return Array.from(new Float64Array(this.core.memory.buffer, at, count));
  }
  scopeOf(id: number): number {
    return this.core.exports.cresset_scope_of(this.env, id);
  }
  snapshot(): string {
    return this.core.text(this.core.exports.cresset_snapshot(this.env));
  }

  private fail(status: number): never {
    const error = errorFor(status - 1, this.core.text(this.core.exports.cresset_error()));
    if (error instanceof OutOfMemoryError && !this.collectNow) {
      error.message += "; torch.tidy() around each step frees what the step made";
    }
    throw error;
  }

  // ---- data

  private lengthAtScratch(): number {
    return new DataView(this.core.memory.buffer).getUint32(this.scratch, true);
  }

  /** The bytes of a tensor, in place. */
  private data(id: number): Uint8Array {
    this.core.view(this.scratch, 8).fill(0);
    const pointer = this.core.exports.cresset_data(this.env, id, this.scratch);
    const length = this.lengthAtScratch();
    if (pointer === 0 && length !== 0) this.fail(5);
    return this.core.view(pointer, length);
  }
  read(id: number, bytes: Uint8Array): void {
    bytes.set(this.data(id));
  }
  write(id: number, bytes: Uint8Array): void {
    const target = this.data(id);
    target.set(bytes.subarray(0, target.length));
  }

  // ---- the frame

  frame(length: number, moved: (frame: Float64Array) => void): Float64Array {
    const { exports, memory } = this.core;
    const doubles = Math.max(length, exports.cresset_frame_capacity());
    const block = exports.malloc(8 * doubles) >>> 0;
    if (block === 0) throw new OutOfMemoryError(`frame: could not allocate ${8 * doubles} bytes`);
    const grown = new Float64Array(memory.buffer, block, doubles);
    grown.set(this.view);
    if (this.frameAt !== 0) exports.free(this.frameAt);
    this.frameAt = block;
    this.frameLength = doubles;
    this.moved = moved;
    return (this.view = grown);
  }

  /** The memory has grown, which detaches the views of memory that is not shared. */
  grown(): void {
    const { exports, memory } = this.core;
    this.counter = new Uint32Array(memory.buffer, exports.cresset_sweep_counter() >>> 0, 2);
    if (this.frameAt === 0) return;
    this.view = new Float64Array(memory.buffer, this.frameAt, this.frameLength);
    this.moved(this.view);
  }

  // ---- memory policy: see Note [Memory policy of the WebAssembly host]

  /** Frees the tensors whose objects are gone; says whether there were any. */
  private sweep(): boolean {
    const { holders, ids } = this;
    let kept = 0;
    for (let i = 0; i < holders.length; i++) {
      if (holders[i]!.deref() === undefined) {
        this.free(ids[i]!);
      } else {
        holders[kept] = holders[i]!;
        ids[kept++] = ids[i]!;
      }
    }
    const found = kept < holders.length;
    holders.length = ids.length = this.survivors = kept;
    this.core.exports.cresset_mark_sweep();
    this.budget = Math.max(this.floor, 2 * this.counters()[0]!);
    return found;
  }

  private collectAndSweep(collectNow: CollectNow): boolean {
    if (this.collecting) return false;
    this.collecting = true;
    if (!this.tried && !works(collectNow)) this.collectNow = null;
    this.tried = true;
    const begin = performance.now();
    this.collections++;
    if (this.collectNow) collectNow();
    const found = this.sweep();
    this.lastSweep = performance.now();
    this.sweepMs = Math.min(this.lastSweep - begin, 2 * this.sweepMs);
    this.collecting = false;
    return found;
  }

  private poll(collectNow: CollectNow, bytes: number): void {
    const young = this.holders.length - this.survivors;
    if (bytes < this.floor / 4 && young < mostYoung) return;
    const cheap = () => performance.now() - this.lastSweep >= 20 * this.sweepMs;
    if (bytes >= this.budget || young >= 4 * mostYoung || cheap()) this.collectAndSweep(collectNow);
  }

  private sawCollection(): void {
    this.sweep();
    this.garbage.register({}, null);
  }

  /** Memory ran out inside a call: frees what is dead, where that can be known. */
  reclaim(attempt: number): number {
    if (attempt > 0 || !this.collectNow) return 0;
    return +this.collectAndSweep(this.collectNow);
  }

  collect(): void {
    if (this.collectNow) this.collectAndSweep(this.collectNow);
  }
  /** A step has ended. Its garbage is not worth a full collection before the budget is used. */
  hint(): void {}
  setBudget(bytes: number): void {
    this.floor = this.budget = bytes;
  }
  setLimit(bytes: number): void {
    this.core.exports.cresset_set_memory_limit(bytes);
  }

  private counters(): Float64Array {
    this.core.exports.cresset_memory_stats(this.scratch);
    return new Float64Array(this.core.view(this.scratch, scratchBytes).slice().buffer);
  }
  stats(): number[] {
    const [allocated, reserved, peak, allocations, hits, sinceSweep] = this.counters();
    const live = Number(this.core.exports.cresset_live(this.env));
    const heap = this.core.memory.buffer.byteLength;
    const counts = [this.budget, live, 0, this.collections, sinceSweep!, heap];
    return [allocated!, reserved!, peak!, allocations!, hits!, ...counts];
  }
  emptyCache(): void {
    this.core.exports.cresset_empty_cache();
  }
  resetPeak(): void {
    this.core.exports.cresset_reset_peak();
  }

  // ---- settings

  threads(n?: number): number {
    if (n !== undefined) {
      if (this.helpers) this.helpers.use(Math.max(1, n));
      else this.core.exports.cresset_set_num_threads(1);
    }
    return this.core.exports.cresset_num_threads();
  }
  schemas(): string {
    return this.core.text(this.core.exports.cresset_schemas());
  }
  rollHash(): number {
    return this.core.exports.cresset_roll_hash() >>> 0;
  }
  buildInfo(): string {
    const threads = this.helpers ? "with threads" : "single-threaded";
    return `WebAssembly ${threads}, ${this.core.text(this.core.exports.cresset_build_info())}`;
  }
}

// Note [Memory policy of the WebAssembly host]
// A tensor's JavaScript object is held by a WeakRef, which costs a sixth of a registered finalizer.
// A WeakRef empties only in a full collection, and not within the job that made or read it. Node
// can be told to forget the second rule (see host_node.ts), so there the policy is the addon's
// (js/addon.cpp) with full collections: when the bytes allocated since the last sweep reach the
// budget, or their count its limit, or sweeps are cheap. Elsewhere one registered object tells that
// the host has collected, and then the WeakRefs are polled: between two jobs.
