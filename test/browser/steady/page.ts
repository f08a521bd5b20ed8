// Starts the worker and keeps its answer where the test finds it.
import type { Steadiness } from "./worker.js";

declare global {
  interface Window {
    steadiness?: Steadiness | { error: string };
  }
}

const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
worker.onmessage = ({ data }: MessageEvent<Steadiness | { error: string }>) => {
  window.steadiness = data;
};
worker.onerror = ({ message }) => {
  window.steadiness = { error: message };
};
