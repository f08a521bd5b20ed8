// Makes what tsc does not: the one CommonJS file that Node runs, its ESM face, the types' entries.
//
// Note [Two forms, one state]: in Node `require` gets dist/index.cjs, and `import` gets
// dist/node.mjs, which holds nothing but that file's names. So a process that loads both forms has
// one Tensor class and one core. The types mirror it: dist/types belongs to the CommonJS form, and
// dist/index.d.mts passes it on. Browsers and bundlers get tsc's modules, dist/web.js.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "rolldown";
import { root } from "./steps.mjs";

/** Bundles the sources into dist/index.cjs and returns the names that it exports. */
async function bundle() {
  const { output } = await build({
    cwd: root,
    input: "js/src/index.ts",
    platform: "node",
    tsconfig: false,
    transform: { target: "node20" },
    output: {
      format: "cjs",
      file: "dist/index.cjs",
      strict: true,
      sourcemap: true,
      keepNames: true,
    },
  });
  return output[0].exports;
}

/** The ESM face: a name may be a reserved word ("var"), so each passes through a numbered one. */
function face(names) {
  const lines = (separator) => names.map((name, i) => `  ${separator(name, i)},\n`).join("");
  return [
    "// The names of the CommonJS form, so that both forms share one state.",
    'import torch from "./index.cjs";',
    `const {\n${lines((name, i) => `${name}: $${i}`)}} = torch;`,
    `export {\n${lines((name, i) => `$${i} as ${name}`)}};\n`,
  ].join("\n");
}

const dist = join(root, "dist");
writeFileSync(join(dist, "node.mjs"), face(await bundle()));
mkdirSync(join(dist, "types"), { recursive: true });
writeFileSync(join(dist, "types", "package.json"), `{ "type": "commonjs" }\n`);
writeFileSync(join(dist, "index.d.mts"), `export * from "./types/index.js";\n`);
