// Reads what the TypeScript side exports: names, signatures and TSDoc, following re-exports.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** One space, and none behind an opening or before a closing bracket. */
export const oneLine = (text) =>
  text
    .replace(/\/\*\*.*?\*\//gs, "")
    .replace(/\s+/g, " ")
    .replace(/([(<[]) /g, "$1")
    .replace(/,? ([)>\]])/g, (_, close) => (close === ">" ? " >" : close))
    .replace(/= >/g, "=>")
    .trim();

/** The text of a TSDoc comment; only its first paragraph. */
function docText(comment) {
  const lines = comment.split("\n").map((line) => line.replace(/^\s*\*? ?/, ""));
  return lines.join(" ").split("  ")[0].replace(/\s+/g, " ").trim();
}

// The comment that ends right before `at`, or "".
function docBefore(text, at) {
  const match = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*$/.exec(text.slice(0, at));
  return match ? docText(match[1]) : "";
}

/** From `at` to the line that ends the declaration's head: with ";" or "{", brackets closed. */
function headAt(text, at) {
  let depth = 0;
  for (let i = at; i < text.length; i++) {
    if ("([{".includes(text[i])) depth++;
    if (")]}".includes(text[i])) depth--;
    const ends = text[i + 1] === "\n";
    if (ends && text[i] === ";" && depth === 0) return text.slice(at, i);
    if (ends && text.startsWith("{}", i - 1) && depth === 0) return text.slice(at, i - 1).trimEnd();
    if (ends && text[i] === "{" && depth === 1) return text.slice(at, i).trimEnd();
  }
  return text.slice(at);
}

/** The members of an interface or class body: { name, doc, head }; an overload is a member too. */
export function members(body) {
  const out = [];
  for (const match of body.matchAll(/^ {2}(?! )(readonly |get )?(\w*)(?=[(?:<])/gm)) {
    const [text, modifier, name] = match;
    if (["constructor", "set"].includes(name)) continue;
    const head = headAt(body, match.index + text.length);
    const shown = modifier ? head.replace(/^\(\)/, "") : head;
    out.push({ name, doc: docBefore(body, match.index), head: shown });
  }
  return out;
}

/** The text between the braces of the declaration that `pattern` opens, or null. */
export function bodyOf(text, pattern) {
  const match = pattern.exec(text);
  if (!match) return null;
  const indent = /^ */.exec(match[0])[0];
  const end = text.indexOf(`\n${indent}}`, match.index);
  const body = text.slice(match.index + match[0].length, end + 1);
  return indent ? body.replaceAll(`\n${indent}`, "\n") : body;
}

/** What a file declares: functions, constants and classes by name. */
function declarations(text) {
  const all = new Map();
  const pattern = /^(?:export )?(?:async )?(function\*?|const|class|abstract class) (\w+)/gm;
  for (const match of text.matchAll(pattern)) {
    const [, kind, name] = match;
    const head = headAt(text, match.index + match[0].length);
    const known = all.get(name);
    if (known) known.heads.push(head);
    else all.set(name, { kind, name, doc: docBefore(text, match.index), heads: [head] });
  }
  return all;
}

function parseFile(path, text) {
  const file = { path, text, declared: declarations(text), exported: new Map(), stars: [] };
  for (const match of text.matchAll(/^export (?:async )?(?:function|const|class) (\w+)/gm))
    file.exported.set(match[1], { local: match[1] });
  for (const [, list, from] of text.matchAll(/^export \{([^}]*)\}(?: from "(.*)")?;/gm)) {
    for (const part of list.split(",").map((p) => p.trim())) {
      const [local, name = local] = part.split(" as ");
      if (local && !local.startsWith("type ")) file.exported.set(name, { local, from });
    }
  }
  for (const [, from] of text.matchAll(/^export \* from "(.*)";/gm)) file.stars.push(from);
  return file;
}

/** Follows exports from file to file; `generated` holds new texts by path. */
export class Exports {
  files = new Map();

  constructor(generated) {
    this.generated = generated;
  }

  file(path) {
    if (!this.files.has(path)) {
      const text = this.generated.get(path) ?? readFileSync(path, "utf8");
      this.files.set(path, parseFile(path, text));
    }
    return this.files.get(path);
  }

  /** Every exported name of a file, with its declaration and the file that holds it. */
  of(path) {
    const file = this.file(path);
    const out = new Map();
    for (const from of file.stars)
      for (const [name, found] of this.of(this.target(path, from))) out.set(name, found);
    for (const name of file.exported.keys()) {
      const found = this.find(path, name);
      if (found) out.set(name, found);
    }
    return out;
  }

  target(path, from) {
    return join(dirname(path), from.replace(/\.js$/, ".ts"));
  }

  find(path, name) {
    const file = this.file(path);
    const own = file.exported.get(name);
    if (own?.from) return this.find(this.target(path, own.from), own.local);
    if (own) {
      const declared = file.declared.get(own.local);
      return declared ? { file, ...declared } : null;
    }
    for (const from of file.stars) {
      const found = this.find(this.target(path, from), name);
      if (found) return found;
    }
    return null;
  }
}

/** The call signatures of a declaration, or the operator that it is another form of. */
export function callsOf({ file, kind, name, heads }) {
  if (kind === "function") {
    const overloads = heads.length > 1 ? heads.slice(0, -1) : heads;
    return { signatures: overloads.map((head) => oneLine(name + head)) };
  }
  const typed = /^: (\w+)(?:<[^=]*>)? =/.exec(heads[0])?.[1];
  const body =
    typed && bodyOf(file.text, new RegExp(`^(?:export )?interface ${typed}\\b.*\\{`, "m"));
  if (body) {
    const calls = members(body).filter((member) => member.name === "");
    return { signatures: calls.map(({ head }) => oneLine(name + head)) };
  }
  const operator = /\bops\.(\w+)/.exec(heads[0])?.[1];
  if (operator) return { operator };
  const other = /^ = (\w+)$/.exec(heads[0])?.[1];
  if (other && file.declared.has(other))
    return callsOf({ file, ...file.declared.get(other), name });
  return null;
}
