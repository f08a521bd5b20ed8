// Asks the built core for its schemas and writes js/src/ops.gen.ts, the lists of names by
// namespace (*.gen.ts) and docs/ops.md. `--check` only says whether they are up to date.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { emitDocs } from "./gen/docs.mjs";
import { emitOps } from "./gen/emit.mjs";
import { emitNamespaces } from "./gen/namespaces.mjs";
import { parseOps } from "./gen/schema.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const addon = process.env.CRESSET_ADDON ?? `${root}build/release/cresset.node`;
const core = createRequire(import.meta.url)(addon);
const ops = parseOps(JSON.parse(core.schemas()));

const files = { "js/src/ops.gen.ts": emitOps(ops, core.rollHash()), ...emitNamespaces(ops) };
const generated = new Map(Object.entries(files).map(([path, text]) => [root + path, text]));
files["docs/ops.md"] = emitDocs(ops, root, generated);

let stale = false;
for (const [path, text] of Object.entries(files)) {
  const full = root + path;
  const old = existsSync(full) ? readFileSync(full, "utf8") : "";
  if (old === text) continue;
  stale = true;
  if (process.argv.includes("--check")) {
    console.error(`${path} is stale: run "node js/gen.mjs"`);
  } else {
    mkdirSync(full.slice(0, full.lastIndexOf("/")), { recursive: true });
    writeFileSync(full, text);
    console.log(`wrote ${path}`);
  }
}
if (stale && process.argv.includes("--check")) process.exit(1);
