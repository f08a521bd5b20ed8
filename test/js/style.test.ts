// The house rules that a program can check, over every file that git knows.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { extname } from "node:path";
import { describe, expect, test } from "vitest";
import { findFunctions } from "./style/functions.js";

const limits = { lines: 600, columns: 100, functionLines: 60 };
const cpp = [".h", ".cpp", ".cu", ".cuh"];
const ts = [".ts", ".mjs", ".js"];
const hash = [".sh", ".py", ".cmake", ".gyp"];

interface SourceFile {
  name: string;
  extension: string;
  text: string;
}

const files: SourceFile[] = execFileSync("git", ["ls-files", "-z"], { encoding: "utf8" })
  .split("\0")
  .filter((name) => [...cpp, ...ts, ...hash, ".def"].includes(extname(name)))
  .filter((name) => !name.includes(".gen.") && existsSync(name))
  .map((name) => ({ name, extension: extname(name), text: readFileSync(name, "utf8") }));

const among = (extensions: string[]) =>
  files.filter(({ extension }) => extensions.includes(extension));

/** One message per line of the chosen files that matches. */
function matches(chosen: SourceFile[], pattern: RegExp): string[] {
  return chosen.flatMap(({ name, text }) =>
    text
      .split("\n")
      .flatMap((line, i) => (pattern.test(line) ? [`${name}:${i + 1}: ${line}`] : [])),
  );
}

test("there is something to check", () => {
  expect(files.length).toBeGreaterThan(20);
});

test(`files have at most ${limits.lines} lines`, () => {
  const long = files.map(({ name, text }) => [name, text.split("\n").length - 1] as const);
  expect(long.filter(([, lines]) => lines > limits.lines)).toEqual([]);
});

test(`lines have at most ${limits.columns} columns`, () => {
  expect(matches(files, new RegExp(`^.{${limits.columns + 1}}`, "u"))).toEqual([]);
});

test(`functions have at most ${limits.functionLines} lines`, () => {
  const long = [...among(cpp), ...among(ts)].flatMap(({ name, extension, text }) =>
    findFunctions(text, cpp.includes(extension) ? "cpp" : "ts")
      .filter(({ length }) => length > limits.functionLines)
      .map(({ header, line, length }) => `${name}:${line}: ${length} lines: ${header.slice(-60)}`),
  );
  expect(long).toEqual([]);
});

test("the first line says what the file holds", () => {
  const silent = files.filter(({ extension, text }) => {
    const [first, second] = text.split("\n");
    const line = (first!.startsWith("#!") ? second : first) ?? "";
    if (extension === ".py" && /^"""\S/.test(line)) return false;
    return !(hash.includes(extension) ? /^# \S/ : /^\/\/ \S/).test(line);
  });
  expect(silent.map(({ name }) => name)).toEqual([]);
});

test("nothing is left for later and no test is skipped", () => {
  // The words are put together here, so that this file passes its own test.
  const marks = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"].join("|");
  const skips = `\\b(it|test|describe)\\.(skip|only|to` + `do)\\(|GTEST_` + `SKIP|DISAB` + `LED_`;
  expect(matches(files, new RegExp(`\\b(${marks})\\b|${skips}`))).toEqual([]);
});

test("no rule lines or banners stand in comments", () => {
  expect(matches(files, /^\s*(\/\/|#|\*)\s*[-=*#~]{5,}/)).toEqual([]);
});

test("macros are those of row tables and the checks", () => {
  const tables = files.filter(({ extension }) => extension === ".def").map(({ text }) => text);
  const known = new Set([
    "CHECK",
    "ASSERT",
    "CUDA_CHECK",
    "LIBRARY_CHECK",
    "NAPI_VERSION",
    "OP_TABLE",
    "OP_TABLE_END",
  ]);
  const usedByTables = (macro: string) => tables.some((text) => text.includes(macro));
  const odd = among(cpp).flatMap(({ name, text }) => {
    const readsTable = /#include "[^"]*\.def"/.test(text);
    // A macro without a value only switches something on.
    return [...text.matchAll(/^[ \t]*#[ \t]*define[ \t]+(\w+)(?=\(|[ \t]+\S)/gm)]
      .map((match) => match[1]!)
      .filter((macro) => !known.has(macro) && !/^(ROW_|HWY_|CRESSET_)/.test(macro))
      .filter((macro) => !readsTable && !usedByTables(macro))
      .filter((macro) => !new RegExp(`#\\s*undef\\s+${macro}\\b`).test(text))
      .map((macro) => `${name}: ${macro}`);
  });
  expect(odd).toEqual([]);
});

describe("the search for functions", () => {
  test("finds them in TypeScript", () => {
    const source = [
      "export class A {", // not a function
      "  get(x = `${'{'}`): number {",
      "    if (x) {",
      "    }",
      "    return /[{]/.test('}') ? 1 : 2; // {",
      "  }",
      "}",
      "const f = async (",
      "  a: number,",
      ") => {",
      "};",
    ].join("\n");
    const found = findFunctions(source, "ts").map(({ line, length }) => [line, length]);
    expect(found).toEqual([
      [2, 5],
      [8, 4],
    ]);
  });

  test("finds them in C++", () => {
    const source = [
      "namespace cresset {",
      "#define BAD {",
      "template <typename T>",
      "T add(T a,",
      "      T b) noexcept {",
      "  char c = '{';",
      "  int n = 1'000;",
      "  auto g = [&](int i) { return i; };",
      "  for (;;) {",
      "  }",
      "}",
      'A::A(int n) : n_(n), text_(R"({)") {',
      "}",
      "struct B {",
      "  int size() const { return 0; }",
      "};",
      "}",
    ].join("\n");
    const found = findFunctions(source, "cpp").map(({ line, length }) => [line, length]);
    expect(found).toEqual([
      [8, 1],
      [3, 9],
      [12, 2],
      [15, 1],
    ]);
  });
});
