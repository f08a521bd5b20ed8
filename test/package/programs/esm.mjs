// A user's ES module.
import * as torch from "cresset";
import { train } from "./train.mjs";

await torch.init();
console.log(JSON.stringify(train(torch)));
