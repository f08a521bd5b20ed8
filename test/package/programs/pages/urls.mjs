// A user's page under Vite that hands the files' addresses over by itself.
import * as torch from "cresset";
import wasmPath from "cresset/wasm/cresset-threads.wasm?url";
import workerPath from "cresset/wasm/worker.js?worker&url";
import { train } from "../train.mjs";

async function run() {
  await torch.init({ wasmPath, workerPath, threads: 2 });
  return { page: { threads: torch.getNumThreads(), ...train(torch) } };
}

globalThis.answer = run();
