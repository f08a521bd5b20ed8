// A user's page: trains here and in a module worker.
import * as torch from "cresset";
import { train } from "../train.mjs";

async function run() {
  const worker = new Worker(new URL("./page-worker.mjs", import.meta.url), { type: "module" });
  const answered = new Promise((resolve, reject) => {
    worker.onmessage = (event) => resolve(event.data);
    worker.onerror = (event) => reject(new Error(event.message ?? "the worker did not load"));
  });
  await torch.init();
  const page = { threads: torch.getNumThreads(), ...train(torch) };
  return { page, worker: await answered };
}

globalThis.answer = run();
