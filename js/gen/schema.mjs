// Parses the operators' schemas into plain objects.

const camel = (name) => name.replace(/([a-z0-9])_+([a-z0-9])/g, (_, a, b) => a + b.toUpperCase());

/** PyTorch's name in JavaScript's spelling: log_softmax -> logSoftmax, add_ -> add_. */
export function camelCase(name) {
  const lead = /^_*/.exec(name)[0];
  return lead + camel(name.slice(lead.length));
}

// Splits at top-level commas.
function split(text) {
  const parts = [];
  let depth = 0;
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    if ("([{".includes(text[i])) depth++;
    if (")]}".includes(text[i])) depth--;
    if (text[i] === "," && depth === 0) {
      parts.push(text.slice(from, i));
      from = i + 1;
    }
  }
  parts.push(text.slice(from));
  return parts.map((p) => p.trim()).filter(Boolean);
}

function parseArg(text, keywordOnly) {
  const match = /^(.+?) ([A-Za-z_]\w*)(?:=(.*))?$/.exec(text);
  if (!match) throw new Error(`schema: cannot read argument "${text}"`);
  let [, type, name, fallback] = match;
  const written = type.includes("(a!)");
  type = type.replace("(a!)", "");
  const fixed = /^int\[(\d+)\](\??)$/.exec(type);
  const repeat = fixed ? Number(fixed[1]) : 1;
  if (fixed) type = `int[]${fixed[2]}`;
  const single = Boolean(fixed);
  const js = camelCase(name);
  return { name, js, type, repeat, single, default: fallback, keywordOnly, written };
}

function parseReturn(text) {
  if (text === "()") return { kind: "none" };
  if (text === "Tensor(a!)") return { kind: "self" };
  if (text === "Tensor") return { kind: "tensor" };
  if (text === "Tensor[]") return { kind: "tensors" };
  if (text === "int[]") return { kind: "ints" };
  if (["Scalar", "bool", "int", "float"].includes(text)) return { kind: "value", type: text };
  const names = split(text.slice(1, -1)).map((p) => p.split(" ").at(-1));
  return { kind: "named", names };
}

function parseOp(entry) {
  const { schema } = entry;
  const open = schema.indexOf("(");
  const arrow = schema.lastIndexOf(" -> ");
  const name = schema.slice(0, open);
  const args = [];
  let keywordOnly = false;
  for (const part of split(schema.slice(open + 1, schema.lastIndexOf(")", arrow)))) {
    if (part === "*") keywordOnly = true;
    else args.push(parseArg(part, keywordOnly));
  }
  const op = {
    ...entry,
    name,
    js: camelCase(name),
    args,
    ret: parseReturn(schema.slice(arrow + 4)),
  };
  op.places = entry.where.split(" ");
  checkTypes(op);
  return op;
}

// The C++ function's types are the truth; a schema text that says otherwise is a mistake.
function checkTypes(op) {
  if (!op.types) return;
  const [, list, result] = /^\((.*)\) -> (.*)$/.exec(op.types);
  const native = split(list).map((t) => t.replace("(a!)", ""));
  const written = op.args.map((a) => (a.type.includes("{") ? a.type.replace(/^\w+/, "") : a.type));
  const same =
    native.length === written.length &&
    native.every((t, i) => t === op.args[i].type || t.replace(/^\w+/, "") === written[i]);
  if (!same) throw new Error(`schema: ${op.schema} does not match its C++ types ${op.types}`);
  op.args.forEach((a, i) => (a.type = native[i]));
  if (result === "(Tensor, ...)" ? op.ret.kind !== "named" : false) {
    throw new Error(`schema: ${op.schema} should return a named tuple`);
  }
}

/** All operators; a row that a family's operator of the same name replaces is left out. */
export function parseOps(entries) {
  const ops = entries.map(parseOp);
  const own = new Set(ops.filter((o) => !o.row).map((o) => o.name));
  return ops.filter((o) => !o.row || !own.has(o.name));
}
