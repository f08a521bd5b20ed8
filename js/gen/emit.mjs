// Writes ops.gen.ts: one typed function per operator, and the methods of Tensor.

const tsTypes = {
  Tensor: "Tensor",
  "Tensor?": "Tensor | null",
  "Tensor|Scalar": "Tensor | Scalar",
  "Tensor|Scalar?": "Tensor | Scalar | null",
  Scalar: "Scalar",
  "Scalar?": "Scalar | null",
  "Scalar[]": "readonly Scalar[]",
  int: "number",
  "int?": "number | null",
  "int[]": "readonly number[]",
  "int[]?": "number | readonly number[] | null",
  float: "number",
  "float?": "number | null",
  "float[]": "readonly number[]",
  "float[]?": "readonly number[] | null",
  bool: "boolean",
  "bool?": "boolean | null",
  ScalarType: "DType",
  "ScalarType?": "DType | null",
  Device: "DeviceLike",
  "Device?": "DeviceLike | null",
  "Generator?": "Generator | null",
  str: "string",
  "Tensor[]": "readonly Tensor[]",
  "Tensor?[]": "readonly (Tensor | null)[]",
};

const reserved = new Set(["var", "delete", "in", "function", "default", "new", "with", "input_"]);

/** Names of an enumeration type such as "Reduction{none|mean|sum}". */
export function choices(type) {
  const match = /^\w+\{(.*)\}$/.exec(type);
  return match ? match[1].split("|") : null;
}

export function tsType(arg) {
  const names = choices(arg.type);
  if (names) return names.map((n) => (n === "None" ? "null" : JSON.stringify(n))).join(" | ");
  if (arg.type === "int[]" && arg.single) return "number | readonly number[]";
  const type = tsTypes[arg.type];
  if (!type) throw new Error(`gen: no TypeScript type for "${arg.type}"`);
  return type;
}

const optional = (arg) => arg.default !== undefined;
const local = (name) => (reserved.has(name) ? `${name}_` : name);

/** The default as a JavaScript expression. */
function defaultOf(arg) {
  const d = arg.default;
  if (d === "None" || d === undefined) return "null";
  if (d === "True") return "true";
  if (d === "False") return "false";
  if (d === "nan") return "NaN";
  if (d === "inf") return "Infinity";
  if (d === "-inf") return "-Infinity";
  if (choices(arg.type)) return JSON.stringify(d.replace(/['"]/g, ""));
  if (d.startsWith("'")) return JSON.stringify(d.slice(1, -1));
  return d;
}

// ---- argument writing

// Fixed-size arguments by their width in doubles; the rest move a position variable.
const widths = {
  Tensor: 1,
  "Tensor?": 1,
  int: 1,
  float: 1,
  bool: 1,
  "bool?": 1,
  ScalarType: 1,
  "ScalarType?": 1,
  Device: 1,
  "Device?": 1,
  Scalar: 3,
  "Scalar?": 3,
  "Tensor|Scalar": 3,
  "Tensor|Scalar?": 3,
  "int?": 2,
  "float?": 2,
  "Generator?": 1,
};

function writeArg(arg, op, at) {
  const x = local(arg.js);
  const where = `"${op.js}", "${arg.js}"`;
  const assign = (value) => `$f[${at}] = ${value};`;
  switch (arg.type) {
    case "Tensor":
      return assign(`$id(${x}, ${where})`);
    case "Tensor?":
      return assign(`$idOrNone(${x}, ${where})`);
    case "int":
      return assign(`$int(${x}, ${where})`);
    case "float":
      return assign(`$float(${x}, ${where})`);
    case "bool":
      return assign(`$flag(${x}, ${where})`);
    case "bool?":
      return assign(`$flagOrNone(${x}, ${where})`);
    case "ScalarType":
      return assign(`$dtypeCode(${x}, ${where})`);
    case "ScalarType?":
      return assign(`$dtypeOrNone(${x}, ${where})`);
    case "Device":
      return assign(`$deviceCode(${x})`);
    case "Generator?":
      return assign(`$generatorOrNone(${x}, ${where})`);
    case "Device?":
      return assign(`$deviceOrNone(${x})`);
    case "Scalar":
      return `$scalar(${at}, ${x}, ${where});`;
    case "Scalar?":
      return `$scalarOrNone(${at}, ${x}, ${where});`;
    case "Tensor|Scalar":
      return `$operand(${at}, ${x}, ${where});`;
    case "Tensor|Scalar?":
      return `$operandOrNone(${at}, ${x}, ${where});`;
    case "int?":
      return `$intOrNone(${at}, ${x}, ${where});`;
    case "float?":
      return `$floatOrNone(${at}, ${x}, ${where});`;
    default:
      return null;
  }
}

function writeList(arg, op, at) {
  const x = local(arg.js);
  const rest = `${at}, ${x}, "${op.js}", "${arg.js}"`;
  switch (arg.type) {
    case "int[]":
      return `$ints(${rest}, ${arg.repeat})`;
    case "int[]?":
      return `$intsOrNone(${rest}, ${arg.repeat})`;
    case "float[]":
      return `$floats(${rest})`;
    case "float[]?":
      return `$floatsOrNone(${rest})`;
    case "Scalar[]":
      return `$scalars(${rest})`;
    case "Tensor[]":
      return `$tensors(${rest})`;
    case "Tensor?[]":
      return `$tensorsOrNone(${rest})`;
    case "str":
      return `$text(${rest})`;
    default:
      throw new Error(`gen: cannot write an argument of type "${arg.type}"`);
  }
}

// Null stands for an enumeration's name "None".
const chosen = (arg, names) => local(arg.js) + (names.includes("None") ? ' ?? "None"' : "");

function writeChoice(arg, names, op, at) {
  const list = JSON.stringify(names);
  return `$f[${at}] = $choice(${chosen(arg, names)}, ${list}, "${op.js}", "${arg.js}");`;
}

function writeArgs(op) {
  const lines = [];
  let fixed = 0;
  let moving = false;
  const at = (offset) => (moving ? (offset ? `$p + ${offset}` : "$p") : String(offset));
  for (const arg of op.args) {
    const names = choices(arg.type);
    const width = names ? 1 : widths[arg.type];
    if (width) {
      if (moving && fixed === 0) lines.push(`$need($p, 64);`);
      lines.push(names ? writeChoice(arg, names, op, at(fixed)) : writeArg(arg, op, at(fixed)));
      fixed += width;
    } else {
      const call = writeList(arg, op, at(fixed));
      const last = arg === op.args.at(-1);
      lines.push(last ? `${call};` : moving ? `$p = ${call};` : `let $p = ${call};`);
      moving = true;
      fixed = 0;
    }
  }
  return lines;
}

// ---- functions

const returns = {
  none: () => "void",
  self: () => "Tensor",
  tensor: () => "Tensor",
  tensors: () => "Tensor[]",
  ints: () => "number[]",
  value: (r) =>
    ({ bool: "boolean", int: "number", float: "number" })[r.type] ??
    "number | bigint | boolean | Complex",
  named: (r) => `Named<${r.names.map((n) => JSON.stringify(camelish(n))).join(" | ")}>`,
};

const camelish = (n) => n.replace(/_([a-z])/g, (_, c) => c.toUpperCase());

function result(op) {
  const { id, ret } = op;
  if (op.js === "_getGrad") return `return $oneOrNull(${id});`;
  switch (ret.kind) {
    case "none":
      return `$none(${id});`;
    case "self":
      return `$none(${id});\n  return ${local(op.args[0].js)};`;
    case "tensor":
      // The core wrote into its first argument: the caller gets that very object back.
      if (op.args.some((a) => a.name === "inplace" && a.type === "bool"))
        return `const $y = $one(${id});\n  return inplace === true ? ${local(op.args[0].js)} : $y;`;
      return `return $one(${id});`;
    case "tensors":
      return `return $many(${id}) as Tensor[];`;
    case "ints":
      return `return $numbers(${id});`;
    case "named":
      return `return $named(${id}, ${JSON.stringify(ret.names.map(camelish))} as const);`;
    default:
      return `return $value(${id}) as ${returns.value(ret)};`;
  }
}

/** Whether the only positional argument besides self is a list: x.view(2, 3). */
export function isVariadic(op) {
  const positional = op.args.filter((a) => !a.keywordOnly);
  const rest = positional[0]?.type === "Tensor" ? positional.slice(1) : positional;
  return rest.length === 1 && rest[0].type === "int[]" && !optional(rest[0]);
}

const returnType = (op) => (op.js === "_getGrad" ? "Tensor | null" : returns[op.ret.kind](op.ret));

/** The overloads of an operator: every count of positional arguments, the rest by name. */
function overloads(op, skipSelf) {
  const args = skipSelf ? op.args.slice(1) : op.args;
  const positional = args.filter((a) => !a.keywordOnly);
  const shown = (a) => `${local(a.js)}: ${tsType(a)}`;
  const lists = [];
  const firstOptional = positional.findIndex(optional);
  const selfCount = skipSelf
    ? 0
    : op.args[0]?.name === "self" || op.args[0]?.name === "input"
      ? 1
      : 0;
  if (isVariadic(op)) {
    const target = positional.at(-1);
    const named = args.filter((a) => a.keywordOnly);
    const opts = named.length ? `, options?: ${optionsType(named)}` : "";
    const before = positional.slice(0, -1).map(shown);
    lists.push([...before, shown(target)].join(", ") + opts);
    lists.push([...before, `...${local(target.js)}: number[]`].join(", "));
    if (named.length)
      lists.push([...before, `...sizeAndOptions: [...number[], ${optionsType(named)}]`].join(", "));
    return lists;
  }
  const all = positional.map((a) => (optional(a) ? `${local(a.js)}?: ${tsType(a)}` : shown(a)));
  const keywords = args.filter((a) => a.keywordOnly);
  if (keywords.length) all.push(`options?: ${optionsType(keywords)}`);
  lists.push(all.join(", "));
  const start = firstOptional < 0 ? positional.length : firstOptional;
  for (let n = Math.min(selfCount, positional.length); n < positional.length; n++) {
    const named = [...positional.slice(n), ...keywords];
    const required = named.some((a) => !optional(a));
    lists.push(
      [
        ...positional
          .slice(0, n)
          .map((a, i) => (i >= start ? `${local(a.js)}: ${tsType(a)} | undefined` : shown(a))),
        `options${required ? "" : "?"}: ${optionsType(named)}`,
      ].join(", "),
    );
  }
  return lists;
}

function optionsType(args) {
  const fields = args.map((a) => `${a.js}${optional(a) ? "?" : ""}: ${tsType(a)} | undefined`);
  return `{ ${fields.join("; ")} }`;
}

function resolveNamed(op) {
  const named = op.args.slice(hasSelf(op) ? 1 : 0);
  if (!named.length) {
    const most = op.args.length;
    return [`if (arguments.length > ${most}) $checkCount("${op.js}", arguments.length, ${most});`];
  }
  const positional = op.args.filter((a) => !a.keywordOnly);
  const lines = [
    "const last = arguments.length > " +
      (hasSelf(op) ? 1 : 0) +
      " ? arguments[arguments.length - 1] : undefined;",
    "if ($isOptions(last)) {",
    `  $checkNames("${op.js}", last, ${JSON.stringify(named.map((a) => a.js))});`,
  ];
  for (const a of named) {
    const x = local(a.js);
    if (a.keywordOnly) lines.push(`  ${x} = last["${a.js}"] as never;`);
    else
      lines.push(
        `  if (${x} === (last as unknown) || ${x} === undefined) ${x} = last["${a.js}"] as never;`,
      );
  }
  lines.push("}");
  if (!positional.some((a) => a.type === "int[]" && isVariadic(op))) {
    const most = positional.length;
    lines.push(
      `else if (arguments.length > ${most}) $checkCount("${op.js}", arguments.length, ${most});`,
    );
  }
  return lines;
}

const hasSelf = (op) => op.args[0]?.type.startsWith("Tensor") && !op.args[0].keywordOnly;

function emitFunction(op) {
  const name = local(op.js);
  const heads = overloads(op, false).map(
    (list) => `export function ${name}(${list}): ${returnType(op)};`,
  );
  const params = op.args.filter((a) => !a.keywordOnly).map((a) => `${local(a.js)}?: ${loose(a)}`);
  const variadic = isVariadic(op);
  if (variadic) params[params.length - 1] = `${params.at(-1)}, ...more: unknown[]`;
  else if (op.args.some((a) => a.keywordOnly)) params.push("_options?: unknown");
  const body = [];
  for (const a of op.args.filter((x) => x.keywordOnly)) body.push(`let ${local(a.js)}: any;`);
  const positional = op.args.filter((a) => !a.keywordOnly);
  body.push(...resolveNamed(op));
  if (variadic) {
    const x = local(positional.at(-1).js);
    const rest = "$isOptions(last) ? more.slice(0, -1) : more";
    body.push(`if (typeof ${x} === "number") ${x} = [${x}, ...(${rest})];`);
  }
  for (const a of op.args)
    if (optional(a) && defaultOf(a) !== "null") {
      const x = local(a.js);
      body.push(`if (${x} === undefined) ${x} = ${defaultOf(a)};`);
    } else if (!optional(a) && a.type.startsWith("Tensor?") === false) {
      const x = local(a.js);
      if (a.type.includes("Scalar") && a.type !== "ScalarType")
        body.push(`if (${x} === undefined) $missing("${op.js}", "${a.js}");`);
    }
  body.push(...writeArgs(op));
  body.push(result(op));
  const impl = `export function ${name}(${params.join(", ")}): any {\n  ${body.join("\n  ")}\n}`;
  const doc = `/** ${op.doc} */\n`;
  const renamed = name !== op.js ? `\nexport { ${name} as ${op.js} };` : "";
  return heads.length ? `${doc}${heads.join("\n")}\n${impl}${renamed}` : `${doc}${impl}${renamed}`;
}

const loose = () => "any";

export function isMethod(op) {
  return op.places.includes("method") && op.args.length > 0 && op.args[0].type.startsWith("Tensor");
}

function emitMethod(op) {
  const ret = op.ret.kind === "self" ? "this" : returnType(op);
  return overloads(op, true)
    .map((list, i) => `${i === 0 ? `  /** ${op.doc} */\n` : ""}  ${op.js}(${list}): ${ret};`)
    .join("\n");
}

// What the generated functions use of frame.ts; `$` keeps them apart from arguments' names.
const helpers = (
  "checkCount checkNames choice deviceCode deviceOrNone dtypeCode dtypeOrNone f flag " +
  "flagOrNone float floatOrNone floats floatsOrNone generatorOrNone id idOrNone int " +
  "intOrNone ints intsOrNone isOptions many missing named need none numbers one " +
  "oneOrNull operand operandOrNone scalar scalarOrNone scalars tensors tensorsOrNone " +
  "text value"
).split(" ");

function importHelpers(text) {
  const used = helpers.filter((name) => new RegExp(`\\$${name}\\b`).test(text));
  const list = used.map((name) => `  ${name} as $${name},\n`).join("");
  return `import {\n${list}  type Named,\n} from "./frame.js";`;
}

// The end of ops.gen.ts: how the methods come onto Tensor's prototype.
const installation = `/** Puts the methods on Tensor's prototype. */
export function installMethods(prototype: object): void {
  for (const [name, fn] of Object.entries(methods)) {
    Object.defineProperty(prototype, name, {
      value: method(fn),
      writable: true,
      configurable: true,
    });
  }
}

function method(fn: Function): Function {
  return function (this: Tensor, a?: unknown, b?: unknown, c?: unknown): unknown {
    switch (arguments.length) {
      case 0: return fn(this);
      case 1: return fn(this, a);
      case 2: return fn(this, a, b);
      case 3: return fn(this, a, b, c);
      default: return fn(this, ...arguments);
    }
  };
}
`;

/** The whole of ops.gen.ts. */
export function emitOps(ops, rollHash) {
  const methods = ops.filter(isMethod);
  const functions = ops.map(emitFunction).join("\n\n");
  return `// Generated by js/gen.mjs from the core's schemas: do not edit.
/* eslint-disable */
import type { Complex, DeviceLike, DType, Scalar } from "./dtype.js";
${importHelpers(functions)}
import type { Generator } from "./generator.js";
import type { Tensor } from "./tensor.js";

/** The roll of operators that these numbers belong to. */
export const rollHash = ${rollHash};

${functions}

/** The operators that are methods of Tensor. */
export interface TensorMethods {
${methods.map(emitMethod).join("\n")}
}

const methods: Record<string, Function> = {
${methods.map((op) => `  ${op.js}: ${local(op.js)},`).join("\n")}
};

${installation}`;
}
