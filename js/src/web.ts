// The package's entry in browsers and their workers: torch's names, ready after `await init()`.
import "./host_web.js";
export * from "./torch.js";
