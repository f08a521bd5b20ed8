// Finds functions in C++ and TypeScript by their braces, well enough to measure how long they are.

export interface FoundFunction {
  /** The text before the brace, on one line. */
  header: string;
  /** The line where the header begins, from 1. */
  line: number;
  /** How many lines it takes, header and last brace included. */
  length: number;
}

type Language = "cpp" | "ts";

const control = /^(if|for|while|switch|catch|do|else|try|namespace|class|struct|enum|union)\b/;
const typeOnly = /^(export )?(declare |abstract |default )*(interface|class|type|enum) /;
const tests = /\b(describe|test\.each|expect)\b/;
const bodyOf: Record<Language, RegExp> = {
  // A parameter list, then what may stand between it and the body.
  cpp: /\)\s*((const|noexcept|override|final|mutable|->[\w:<>,\s*&]+)\s*)*(:[^;]*)?$|^[^=]*\]$/,
  ts: /\)\s*(:[^=;]*)?$|=>$/,
};

/** The end of the string that opens at `start`; a backslash escapes, a `${` in a template nests. */
function stringEnd(source: string, start: number): number {
  const quote = source[start];
  for (let i = start + 1; i < source.length; i++) {
    if (source[i] === "\\") i++;
    else if (source[i] === quote) return i + 1;
    else if (quote === "`" && source.startsWith("${", i)) i = placeholderEnd(source, i + 2) - 1;
    else if (source[i] === "\n" && quote !== "`") return i;
  }
  return source.length;
}

/** The end of a template's `${`, whose inside begins at `start`. */
function placeholderEnd(source: string, start: number): number {
  let depth = 1;
  for (let i = start; i < source.length; i++) {
    const char = source[i]!;
    if (char === "{") depth++;
    else if (char === "}" && --depth === 0) return i + 1;
    else if ("\"'`".includes(char)) i = stringEnd(source, i) - 1;
  }
  return source.length;
}

/** The end of a regular expression; a slash inside brackets does not close it. */
function regexEnd(source: string, start: number): number {
  let inClass = false;
  for (let i = start + 1; i < source.length && source[i] !== "\n"; i++) {
    if (source[i] === "\\") i++;
    else if (source[i] === "[") inClass = true;
    else if (source[i] === "]") inClass = false;
    else if (source[i] === "/" && !inClass) return i + 1;
  }
  return start + 1;
}

/** Where the comment or literal at `i` ends; `i` itself when there is none. */
function skipEnd(source: string, i: number, language: Language): number {
  const rest = (text: string) => source.startsWith(text, i);
  const find = (text: string, from: number) => {
    const at = source.indexOf(text, from);
    return at < 0 ? source.length : at + text.length;
  };
  if (rest("//")) return find("\n", i) - 1;
  if (rest("/*")) return find("*/", i + 2);
  if (language === "cpp") {
    const raw = rest('R"') && /^R"([^(]*)\(/.exec(source.slice(i, i + 20));
    if (raw) return find(`)${raw[1]}"`, i);
    // A quote after a digit separates digits.
    if (rest("'") && /[0-9a-fA-F]/.test(source[i - 1] ?? "")) return i + 1;
    return rest('"') || rest("'") ? stringEnd(source, i) : i;
  }
  if (rest('"') || rest("'") || rest("`")) return stringEnd(source, i);
  const before = source.slice(Math.max(0, i - 20), i).trimEnd();
  const regex = rest("/") && /(^|[(,=:[!&|?{};]|return)$/.test(before);
  return regex ? regexEnd(source, i) : i;
}

/** The source with comments and the insides of literals blanked; lines stay where they were. */
function blank(source: string, language: Language): string {
  let result = "";
  for (let i = 0; i < source.length;) {
    const end = skipEnd(source, i, language);
    if (end > i) result += source.slice(i, end).replace(/[^\n]/g, " ");
    else result += source[i];
    i = Math.max(end, i + 1);
  }
  return language === "cpp" ? result.replace(/^[ \t]*#(.*\\\n)*.*$/gm, keepLines) : result;
}

function keepLines(text: string): string {
  return text.replace(/[^\n]/g, " ");
}

function isFunction(header: string, language: Language): boolean {
  if (control.test(header) || typeOnly.test(header) || tests.test(header)) return false;
  return bodyOf[language].test(header);
}

/** Every function of a source file, those inside others too. */
export function findFunctions(source: string, language: Language): FoundFunction[] {
  const text = blank(source, language);
  const found: FoundFunction[] = [];
  const open: { header: string; line: number }[] = [];
  let headerStart = 0;
  let line = 1;
  let parens = 0;
  const parenStack: number[] = [];
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!;
    if (char === "\n") line++;
    else if (char === "(") parens++;
    else if (char === ")") parens--;
    else if (char === "{") {
      const raw = text.slice(headerStart, i);
      const header = raw.trim().replace(/\s+/g, " ");
      open.push({ header, line: line - raw.trimStart().split("\n").length + 1 });
      parenStack.push(parens);
      parens = 0;
      headerStart = i + 1;
    } else if (char === "}") {
      const block = open.pop();
      if (block && isFunction(block.header, language)) {
        found.push({ ...block, length: line - block.line + 1 });
      }
      parens = parenStack.pop() ?? 0;
      headerStart = i + 1;
    } else if (char === ";" && parens === 0) headerStart = i + 1;
  }
  return found;
}
