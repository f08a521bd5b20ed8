// Which operators agree with PyTorch's recorded results on which device, by the lists that
// `npm run parity -- --update` keeps.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { camelCase } from "./schema.mjs";

/** The columns of the table and the lists behind them. */
const columns = { CPU: "passing.txt", CUDA: "passing.cuda.txt", WASM: "passing.wasm.txt" };

const lines = (path) =>
  existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : [];

// Python's reflected operators and properties are recorded beside functions.
const isSpoken = (name) => !name.startsWith("__");

/** The API's spelling of a recorded name: nn.functional.log_softmax -> nn.functional.logSoftmax. */
const apiName = (name) => name.split(".").map(camelCase).join(".");

export class Support {
  constructor(root) {
    const folder = `${root}test/parity/`;
    const archive = `${folder}pytorch-2.11.tar.xz`;
    const listing = execFileSync("tar", ["-tf", archive], { encoding: "utf8" });
    this.recorded = [...listing.matchAll(/ops\/(.*)\.safetensors/g)].map(([, name]) => name).sort();
    this.lists = Object.values(columns).map((file) => new Set(lines(folder + file)));
    this.columns = Object.keys(columns);
    this.byName = new Map();
    for (const name of this.recorded.filter(isSpoken)) {
      const api = apiName(name);
      for (const key of [api, api.slice(0, api.lastIndexOf("."))])
        this.byName.set(key, [...(this.byName.get(key) ?? []), name]);
    }
  }

  /** The cells of an operator that is public under `names` (vectorNorm: linalg.vectorNorm). */
  cells(names) {
    const recordings = names.flatMap((name) => this.byName.get(name) ?? []);
    return this.lists.map((list, column) => {
      if (recordings.length === 0) return column === 0 ? "·" : "";
      const passing = recordings.filter((name) => list.has(name)).length;
      return passing === recordings.length ? "✓" : passing > 0 ? "partly" : "";
    });
  }

  /** Recorded names that are not on the CPU's list. */
  missing() {
    return this.recorded.filter((name) => !this.lists[0].has(name));
  }
}
