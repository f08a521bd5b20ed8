// Chooses, fetches and compiles the WebAssembly module; says in words why it cannot be had.
import { CressetError, NotImplementedError } from "../errors.js";

export type ModuleName = "cresset.wasm" | "cresset-threads.wasm";

/** A function with one 128-bit vector in it, as a module. */
const simdProbe = Uint8Array.of(
  ...[0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0],
  ...[10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11],
);

/** Refuses hosts that cannot run the module, by what they lack. */
export function checkHost(): void {
  if (typeof WebAssembly === "undefined") {
    throw new NotImplementedError("init: this browser has no WebAssembly");
  }
  if (!WebAssembly.validate(simdProbe)) {
    throw new NotImplementedError(
      "init: this browser has no WebAssembly SIMD (since Chrome 91, Firefox 89, Safari 16.4)",
    );
  }
}

/** Whether threads can share memory here. */
export function threadsAllowed(): boolean {
  if (typeof SharedArrayBuffer === "undefined") return false;
  return typeof crossOriginIsolated === "undefined" || crossOriginIsolated;
}

/** How many threads to run: what was asked for, or one for each core. */
export function threadCount(wanted: number | boolean | undefined, cores: number): number {
  if (wanted === false || (typeof wanted === "number" && wanted <= 1)) return 1;
  return typeof wanted === "number" ? Math.floor(wanted) : Math.min(cores, 16);
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Compiles the module's bytes. */
export async function compile(bytes: ArrayBuffer | Uint8Array): Promise<WebAssembly.Module> {
  try {
    return await WebAssembly.compile(bytes);
  } catch (error) {
    throw new CressetError(`init: the WebAssembly module does not compile: ${reason(error)}`);
  }
}

/** Fetches and compiles the module at an address. */
export async function fetchModule(address: string | URL): Promise<WebAssembly.Module> {
  let response: Response;
  try {
    response = await fetch(address);
  } catch (error) {
    throw new CressetError(`init: could not fetch ${String(address)}: ${reason(error)}`);
  }
  if (!response.ok) {
    throw new CressetError(`init: could not fetch ${String(address)}: status ${response.status}`);
  }
  const type = response.headers.get("content-type") ?? "";
  if (type.includes("text/html")) {
    throw new CressetError(`init: expected a WebAssembly module at ${String(address)}, got a page`);
  }
  // Compiling while it loads needs the right type; some servers do not give it.
  if (!type.includes("application/wasm")) return compile(await response.arrayBuffer());
  try {
    return await WebAssembly.compileStreaming(response);
  } catch (error) {
    throw new CressetError(`init: ${String(address)} does not compile: ${reason(error)}`);
  }
}
