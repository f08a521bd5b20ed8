// A helping thread of the threaded WebAssembly core: runs as a worker and never ends by itself.
import { Core } from "./module.js";

/** What a thread is started with; the core's memory holds its stack and its thread record. */
export interface ThreadStart {
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
  /** Highest and lowest address of the stack. */
  stackTop: number;
  stackEnd: number;
  /** Address of a zeroed thread record. */
  record: number;
}

function run({ module, memory, stackTop, stackEnd, record }: ThreadStart): void {
  const core = Core.startSync(module, memory, { reclaim: () => 0, grown: () => {} });
  const { exports } = core;
  exports.emscripten_stack_set_limits(stackTop, stackEnd);
  exports.stackRestore(stackTop);
  exports._emscripten_thread_init(record, 0, 0, 1, 0);
  exports.emscripten_tls_init();
  exports.cresset_thread_main();
}

const threads = globalThis.process?.getBuiltinModule?.("node:worker_threads");
if (threads?.workerData) {
  run(threads.workerData as ThreadStart);
} else {
  (globalThis as { onmessage?: unknown }).onmessage = (event: { data: ThreadStart }) =>
    run(event.data);
}
