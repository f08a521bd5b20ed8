// The helping threads of the threaded core: starts workers and knows when they have come up.
import type { Core } from "./module.js";
import type { ThreadStart } from "./worker.js";

/** Makes a worker that runs wasm/worker.ts with `start`; calls `failed` if it cannot. */
export type Spawn = (start: ThreadStart, failed: (why: string) => void) => void;

const stackBytes = 512 * 1024;
const recordBytes = 1024;
const patienceMs = 20_000;

export class Threads {
  #started = 0;
  #failure = "";

  constructor(
    private readonly core: Core,
    private readonly module: WebAssembly.Module,
    private readonly spawn: Spawn,
  ) {}

  /** Starts workers so that `count` threads can run, the calling one included. */
  use(count: number): void {
    const { exports, memory } = this.core;
    while (this.#started + 1 < count && !this.#failure) {
      const block = exports.malloc(stackBytes + recordBytes) >>> 0;
      if (block === 0) return;
      this.core.view(block + stackBytes, recordBytes).fill(0);
      const stackTop = (block + stackBytes) & ~15;
      this.#started++;
      this.spawn(
        { module: this.module, memory, stackTop, stackEnd: block, record: block + stackBytes },
        (why) => (this.#failure = why),
      );
    }
    exports.cresset_set_num_threads(count);
  }

  /** Waits until the workers have come up; gives why not all of them did, or "". */
  async ready(): Promise<string> {
    const begin = performance.now();
    while (this.core.exports.cresset_threads_ready() < this.#started + 1) {
      if (this.#failure) return this.#failure;
      if (performance.now() - begin > patienceMs) return "the workers did not start in time";
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    return "";
  }
}
