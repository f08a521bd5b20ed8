// Trains in two worker threads and in the main thread at the same time.
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import * as torch from "cresset";
import { train } from "./train.mjs";

await torch.init();
if (isMainThread) {
  const answers = [1, 2].map(
    () =>
      new Promise((resolve, reject) => {
        const worker = new Worker(new URL(import.meta.url));
        worker.once("message", resolve).once("error", reject);
      }),
  );
  const own = train(torch);
  console.log(JSON.stringify([own, ...(await Promise.all(answers))]));
} else {
  parentPort.postMessage(train(torch));
}
