// The package's entry in Node, Bun and Deno: torch's names on the native addon, or on WebAssembly.
/// <reference lib="esnext.disposable" preserve="true" />
import "./host_node.js";
export * from "./torch.js";
/** What was found on this machine: for `cresset doctor` and tests; not in a browser. */
export { hostReport as _hostReport } from "./host_node.js";
