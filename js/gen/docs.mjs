// Writes docs/ops.md: every public operator once, with its signatures and where it runs; then
// Tensor's other members, layers, optimizers and what is missing.
import { readdirSync, readFileSync } from "node:fs";
import { isMethod } from "./emit.mjs";
import { bodyOf, callsOf, Exports, members, oneLine } from "./exports.mjs";
import { Support } from "./support.mjs";

// Namespaces of functions and the files that export them.
const spaces = {
  "": "torch.ts",
  "linalg.": "linalg.ts",
  "special.": "special.ts",
  "fft.": "fft.ts",
  "nn.functional.": "nn/functional.ts",
};

const escaped = (text) => text.replaceAll("|", "\\|");
const code = (text) => `\`${escaped(text)}\``;
const line = (...cells) => `| ${cells.join(" | ")} |`;
const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
const lastName = (path) => path.slice(path.lastIndexOf(".") + 1);

/** What is public: operators and wrappers of operators, each with all its names. */
class Rows {
  byKey = new Map();

  /** `key` names the thing itself, `path` is one of its public names. */
  add(key, path, { signatures, doc }) {
    if (!this.byKey.has(key)) this.byKey.set(key, { paths: [], methods: [], signatures, doc });
    if (path) this.byKey.get(key).paths.push(path);
    return this.byKey.get(key);
  }

  /** The row that torch.<name> means, or the operator of that name. */
  named(name) {
    const isCalled = (row) => row.paths.includes(name);
    return [...this.byKey.values()].find(isCalled) ?? this.byKey.get(name);
  }
}

const isInPlace = (op) => op.ret.kind === "self" && op.js.endsWith("_");

// A private operator shows under the name of the function that stands before it.
function contentOf(op) {
  const schema = op.places.includes("private") ? op.schema.replace(/^_/, "") : op.schema;
  return { signatures: [schema], doc: op.doc };
}

function addFunctions(rows, others, exports, ops, src) {
  const byJs = new Map(ops.map((op) => [op.js, op]));
  for (const [prefix, entry] of Object.entries(spaces)) {
    for (const [name, declared] of exports.of(src + entry)) {
      if (declared.kind.endsWith("class")) continue;
      const path = prefix + name;
      const generated = declared.file.path.endsWith("ops.gen.ts");
      const calls = generated ? { operator: declared.name } : callsOf(declared);
      const op = calls?.operator && (byJs.get(calls.operator) ?? byJs.get(name));
      if (op && !isInPlace(op)) rows.add(op.js, path, contentOf(op));
      else if (calls?.signatures) {
        const { signatures } = calls;
        const found = { signatures, doc: declared.doc };
        if (/Tensor/.test(signatures.join()))
          rows.add(`${declared.file.path}:${declared.name}`, path, found);
        else if (!name.startsWith("_")) others.push({ name: path, ...found });
      }
    }
  }
}

function addOperatorMethods(rows, ops) {
  for (const op of ops.filter(isMethod)) {
    const base = isInPlace(op) ? rows.named(op.js.slice(0, -1)) : undefined;
    const row = base ?? rows.add(op.js, null, contentOf(op));
    row.methods.push(op.js);
  }
}

/** Members of Tensor that are written by hand; those of operators are added to their rows. */
function addWrittenMethods(rows, src) {
  const others = [];
  const heads = [
    /^export class Tensor \{/m,
    /^ {2}interface Tensor \{/m,
    /^export interface ReduceMethods \{/m,
  ];
  const files = readdirSync(src).filter((f) => f.endsWith(".ts") && !f.endsWith(".gen.ts"));
  for (const text of files.map((f) => readFileSync(src + f, "utf8"))) {
    const bodies = heads.map((head) => bodyOf(text, head)).filter(Boolean);
    for (const { name, doc, head } of bodies.flatMap(members)) {
      const row = rows.named(name);
      if (row && !row.methods.includes(name)) row.methods.push(name);
      if (!row && doc && !name.startsWith("_"))
        others.push({ name, doc, signatures: [oneLine(name + head)] });
    }
  }
  return others;
}

// ---- tables

function placesOf({ paths, methods }, name) {
  const places = paths.map((path) => {
    const space = path.slice(0, Math.max(0, path.lastIndexOf("."))) || "torch";
    return lastName(path) === name ? space : code(`${space}.${lastName(path)}`);
  });
  const form = (m) => (m === name ? "Tensor" : m === `${name}_` ? "in place" : code(`Tensor.${m}`));
  const ofTensor = methods.map(form);
  return [...places, ...ofTensor].join(", ");
}

function operatorTable(rows, support) {
  const entries = [...rows.byKey.values()].map((row) => {
    const names = [...row.paths, ...row.methods];
    return { ...row, name: names[0], cells: support.cells(names) };
  });
  const lines = entries.sort(byName).map((row) => {
    const signatures = row.signatures.map(code).join("<br>");
    return line(
      code(row.name),
      placesOf(row, lastName(row.name)),
      signatures,
      escaped(row.doc),
      ...row.cells,
    );
  });
  const head = ["operator", "in", "signature", "what it does", ...support.columns];
  return { count: lines.length, text: table(head, lines) };
}

const table = (head, lines) => [line(...head), line(...head.map(() => "---")), ...lines].join("\n");

const plainTable = (what, entries) =>
  table(
    [what, "what it does"],
    entries.sort(byName).map((e) => line(e.signatures.map(code).join("<br>"), escaped(e.doc))),
  );

/** Classes that a file exports, by name. */
function classTable(what, exports, path) {
  const classes = [...exports.of(path)].filter(([, { kind }]) => kind.endsWith("class"));
  const entries = classes.map(([name, { doc }]) => ({ name, signatures: [name], doc }));
  return plainTable(what, entries);
}

function missingText(names) {
  if (names.length === 0) return "None of the recorded operators is missing.";
  const head = "Recorded operators with arguments that are refused with NotImplementedError:";
  return `${head} ${names.map(code).join(", ")}.`;
}

/** `generated` holds the texts of the generated TypeScript files by path. */
export function emitDocs(ops, root, generated) {
  const src = `${root}js/src/`;
  const exports = new Exports(generated);
  const support = new Support(root);
  const rows = new Rows();
  const others = [];
  addFunctions(rows, others, exports, ops, src);
  addOperatorMethods(
    rows,
    ops.filter((op) => !op.places.includes("private")),
  );
  const tensorMembers = addWrittenMethods(rows, src);
  const { count, text } = operatorTable(rows, support);
  const missing = missingText(support.missing());
  return `# Operators

Generated from the core's schemas and from what js/src exports: ${count} operators. A signature is
the schema with PyTorch's names, or that of the TypeScript function where PyTorch's overloads
became one function. In JavaScript names are camelCase, and optional arguments may be given by
position or in one trailing object. "in place" is the method whose name ends in an underscore. On
\`meta\` an operator computes shapes only.

The last columns: ✓ every recorded result of PyTorch agrees on that device; "partly": some variants
do; · has a kernel but no recorded results; empty: no kernel, or not compared yet.

${text}

## Not implemented

${missing}

## Members of Tensor

${plainTable("member", tensorMembers)}

## Other functions

${plainTable("function", others)}

## torch.nn

${classTable("layer", exports, `${src}nn/index.ts`)}

## torch.optim

${classTable("optimizer", exports, `${src}optim/index.ts`)}

## torch.optim.lrScheduler

${classTable("schedule", exports, `${src}optim/lr_scheduler.ts`)}
`;
}
