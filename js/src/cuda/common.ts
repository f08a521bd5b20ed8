// What the files of torch.cuda share: texts from the core, scopes, waiting without blocking.
import { ValueError } from "../errors.js";
import type { Tensor } from "../tensor.js";

/** The text of a uint8 tensor, which is freed. */
export function readText(bytes: Tensor): string {
  const text = new TextDecoder().decode(bytes.data() as Uint8Array);
  bytes.dispose();
  return text;
}

/** The value of a uint8 tensor that holds JSON. */
export function readJson<T>(bytes: Tensor): T {
  return JSON.parse(readText(bytes)) as T;
}

/** A text for the core, whose frame carries ASCII only. */
export function ascii(op: string, text: string): string {
  for (const c of text) {
    if (c.charCodeAt(0) > 126) throw new ValueError(`${op}: expected plain letters, got "${text}"`);
  }
  return text;
}

/** Undoes a change when disposed: `using _ = torch.cuda.withDevice(1)`. */
export class Scope {
  private leave: (() => void) | null;
  constructor(leave: () => void) {
    this.leave = leave;
  }
  [Symbol.dispose](): void {
    this.leave?.();
    this.leave = null;
  }
}

/** Runs `fn` and then `leave`; refuses a function that goes on after it has returned. */
export function scoped<R>(name: string, fn: () => R, leave: () => void): R {
  try {
    const result = fn();
    if (result instanceof Promise) {
      throw new ValueError(
        `${name}: the function returned a promise; the scope would end before it does. ` +
          `Await first and put only the synchronous part inside ${name}`,
      );
    }
    return result;
  } finally {
    leave();
  }
}

/**
 * Resolves when `isDone` says so. The event loop runs on: the first looks follow one another at
 * once, since most kernels take microseconds, later ones come every millisecond.
 */
export async function until(isDone: () => boolean): Promise<void> {
  for (let looks = 0; !isDone(); looks++) {
    await new Promise<void>((go) => {
      if (looks < 64 && typeof setImmediate === "function") setImmediate(go);
      else setTimeout(go, 1);
    });
  }
}
