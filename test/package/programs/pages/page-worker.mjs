// A user's module worker: trains and sends the results to the page.
import * as torch from "cresset";
import { train } from "../train.mjs";

torch.init().then(() => {
  postMessage({ threads: torch.getNumThreads(), ...train(torch) });
});
