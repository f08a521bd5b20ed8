// Instantiates the WebAssembly core: the few functions it imports, and its growing memory.

/**
 * What the module exports: core/abi.h and wasm/host.cpp. Pointers are 32 bits wide and come as
 * signed numbers: `>>> 0` before use.
 */
export interface CoreExports {
  readonly memory?: WebAssembly.Memory;
  readonly __indirect_function_table: object;
  __wasm_call_ctors(): void;
  malloc(bytes: number): number;
  free(block: number): void;
  cresset_module_start(): void;
  cresset_env_new(): number;
  cresset_call(env: number, op: number, frame: number): number;
  cresset_error(): number;
  cresset_roll_hash(): number;
  cresset_schemas(): number;
  cresset_free(env: number, id: number): void;
  cresset_live(env: number): bigint;
  cresset_scope_begin(env: number): number;
  cresset_scope_end(env: number, depth: number, frame: number): void;
  cresset_scope_of(env: number, id: number): number;
  cresset_keep(env: number, frame: number): void;
  cresset_scope_ids(env: number, depth: number, count: number): number;
  cresset_snapshot(env: number): number;
  cresset_frame_capacity(): number;
  cresset_data(env: number, id: number, bytes: number): number;
  cresset_memory_stats(out: number): void;
  cresset_sweep_counter(): number;
  cresset_mark_sweep(): void;
  cresset_empty_cache(): void;
  cresset_reset_peak(): void;
  cresset_set_memory_limit(bytes: number): void;
  cresset_num_threads(): number;
  cresset_set_num_threads(n: number): void;
  cresset_build_info(): number;
  // Of the threaded module only.
  cresset_thread_main(): never;
  cresset_threads_ready(): number;
  _emscripten_thread_init(
    self: number,
    isBrowserMain: number,
    isMain: number,
    canBlock: number,
    startProfiling: number,
  ): void;
  emscripten_tls_init(): number;
  emscripten_stack_set_limits(top: number, end: number): void;
  stackRestore(top: number): void;
}

/** What the module asks of the side that holds the tensors. */
export interface CoreHost {
  /** Frees dead tensors when memory ran out: see cresset_set_reclaim in core/abi.h. */
  reclaim(attempt: number): number;
  /** The memory has grown; views made before are stale. */
  grown(): void;
}

const pageBytes = 65536;
// One page less than 4 GiB: the number of bytes must fit 32 bits.
const mostPages = 65535;
const firstPages = 256;
const mostSlack = 256 * 1024 * 1024;

/** Whether a compiled module is the threaded one: it imports its memory. */
export function isThreaded(module: WebAssembly.Module): boolean {
  return WebAssembly.Module.imports(module).some(({ kind }) => kind === "memory");
}

/** The memory that all threads share. Some devices cannot reserve 4 GiB: they get less. */
export function sharedMemory(): WebAssembly.Memory {
  for (let maximum = mostPages + 1; ; maximum /= 2) {
    try {
      return new WebAssembly.Memory({ initial: firstPages, maximum, shared: true });
    } catch (error) {
      if (maximum / 2 < firstPages) throw error;
    }
  }
}

/** A started module. */
export class Core {
  readonly exports: CoreExports;
  readonly memory: WebAssembly.Memory;
  readonly #decoder = new TextDecoder();

  private constructor(instance: WebAssembly.Instance, memory: WebAssembly.Memory | null) {
    this.exports = instance.exports as CoreExports;
    this.memory = memory ?? this.exports.memory!;
  }

  /** Instantiates at once, which a browser's page allows only for small modules. */
  static startSync(module: WebAssembly.Module, memory: WebAssembly.Memory | null, host: CoreHost) {
    const core = { current: null as Core | null };
    const imports = importsFor(module, memory, host, core);
    return (core.current = new Core(new WebAssembly.Instance(module, imports), memory));
  }

  static async start(
    module: WebAssembly.Module,
    memory: WebAssembly.Memory | null,
    host: CoreHost,
  ): Promise<Core> {
    const core = { current: null as Core | null };
    const imports = importsFor(module, memory, host, core);
    return (core.current = new Core(await WebAssembly.instantiate(module, imports), memory));
  }

  /** The bytes at a pointer, fresh after any growth. */
  view(pointer: number, length: number): Uint8Array {
    return new Uint8Array(this.memory.buffer, pointer >>> 0, length);
  }

  /** A zero-terminated text. */
  text(pointer: number): string {
    const bytes = new Uint8Array(this.memory.buffer);
    const begin = pointer >>> 0;
    // A copy: shared memory cannot be decoded in place.
    return this.#decoder.decode(bytes.slice(begin, bytes.indexOf(0, begin)));
  }

  /** Grows the memory to at least `wanted` bytes; false when that is refused. */
  grow(wanted: number): boolean {
    const pages = this.memory.buffer.byteLength / pageBytes;
    const least = Math.ceil(wanted / pageBytes) - pages;
    const slack = Math.floor(Math.min(pages / 2, mostSlack / pageBytes));
    for (const more of [Math.max(least, Math.min(slack, mostPages - pages)), least]) {
      if (pages + more > mostPages) continue;
      try {
        this.memory.grow(more);
        return true;
      } catch {
        continue; // with less slack
      }
    }
    return false;
  }
}

/** Text that the C library prints: only its own last words do. */
function printed(core: Core, list: number, count: number): string {
  const words = new DataView(core.memory.buffer);
  let text = "";
  for (let i = 0; i < count; i++) {
    const at = words.getUint32((list >>> 0) + 8 * i, true);
    const length = words.getUint32((list >>> 0) + 8 * i + 4, true);
    text += new TextDecoder().decode(core.view(at, length).slice());
  }
  return text;
}

function importsFor(
  module: WebAssembly.Module,
  memory: WebAssembly.Memory | null,
  host: CoreHost,
  core: { current: Core | null },
): WebAssembly.Imports {
  const known: Record<string, unknown> = {
    memory,
    reclaim: (attempt: number) => host.reclaim(attempt),
    emscripten_resize_heap(wanted: number): number {
      if (!core.current!.grow(wanted >>> 0)) return 0;
      host.grown();
      return 1;
    },
    getentropy(buffer: number, length: number): number {
      // Not in place: shared memory is refused.
      core.current!.view(buffer, length).set(crypto.getRandomValues(new Uint8Array(length)));
      return 0;
    },
    emscripten_get_now: () => performance.now(),
    emscripten_check_blocking_allowed(): void {},
    fd_write(_fd: number, list: number, count: number, written: number): number {
      const text = printed(core.current!, list, count);
      if (text.trim()) console.error(text);
      new DataView(core.current!.memory.buffer).setUint32(written >>> 0, text.length, true);
      return 0;
    },
    environ_sizes_get(count: number, size: number): number {
      const view = new DataView(core.current!.memory.buffer);
      view.setUint32(count >>> 0, 0, true);
      view.setUint32(size >>> 0, 0, true);
      return 0;
    },
    environ_get: () => 0,
    __emscripten_init_main_thread_js(self: number): void {
      const onPage = "document" in globalThis;
      core.current!.exports._emscripten_thread_init(self, +onPage, 1, +!onPage, 0);
    },
  };
  const imports: WebAssembly.Imports = {};
  for (const { module: space, name } of WebAssembly.Module.imports(module)) {
    (imports[space] ??= {})[name] = known[name] ?? absent(name);
  }
  return imports;
}

/** An import that only a broken module would call. */
function absent(name: string): () => never {
  return () => {
    throw new WebAssembly.RuntimeError(`cresset: the WebAssembly core called ${name}`);
  };
}
