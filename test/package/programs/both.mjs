// Loads both forms of the package in one process: they must be one.
import { createRequire } from "node:module";
import * as torch from "cresset";

const required = createRequire(import.meta.url)("cresset");
const differ = Object.keys(torch).filter((name) => torch[name] !== required[name]);
const sum = torch.ones([2]).add(required.ones([2]));
console.log(JSON.stringify({ differ, sum: sum.tolist(), isTensor: sum instanceof torch.Tensor }));
