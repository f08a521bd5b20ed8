// The types of the packed package, as each kind of TypeScript project resolves them.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { here, packages, root, users } from "./places.js";

const compilers = {
  "TypeScript 5": `${here}node_modules/typescript/bin/tsc`,
  "TypeScript 7": `${root}node_modules/typescript/bin/tsc`,
};

type Project = [
  compiler: keyof typeof compilers,
  module: string,
  resolution: string,
  files: string[],
];

// A bundler's project has no CommonJS files, and node10 knows no others.
const projects: Project[] = [
  ["TypeScript 5", "node16", "node16", ["typed.mts", "typed.cts"]],
  ["TypeScript 5", "commonjs", "node10", ["typed.cts"]],
  ["TypeScript 7", "nodenext", "nodenext", ["typed.mts", "typed.cts"]],
  ["TypeScript 7", "esnext", "bundler", ["typed.mts"]],
];

/** Compiles a project strictly, libraries included, without Node's types; returns the messages. */
function compile(compiler: string, module: string, moduleResolution: string, files: string[]) {
  const project = `${users.plain}/tsconfig.json`;
  const strictness = { noEmit: true, strict: true, skipLibCheck: false, types: [] };
  const target = { target: "es2022", lib: ["es2022", "dom"] };
  const compilerOptions = { ...strictness, ...target, module, moduleResolution };
  writeFileSync(project, JSON.stringify({ compilerOptions, files }));
  try {
    execFileSync(process.execPath, [compiler, "-p", project], { encoding: "utf8" });
    return "";
  } catch (error) {
    return (error as { stdout: string }).stdout;
  } finally {
    rmSync(project);
  }
}

test.each(projects)("%s, module %s, resolution %s", (name, module, resolution, files) => {
  expect(compile(compilers[name], module, resolution, files)).toBe("");
});

test("every entry has types of its own kind", async () => {
  const tarball = readdirSync(packages).find((name) => /^cresset-\d.*\.tgz$/.test(name))!;
  const bytes = new Uint8Array(readFileSync(`${packages}/${tarball}`));
  const checker = (await import(`${here}node_modules/@arethetypeswrong/core/dist/index.js`)) as {
    createPackageFromTarballData(bytes: Uint8Array): unknown;
    checkPackage(files: unknown, options: { entrypoints: string[] }): Promise<object>;
  };
  const files = checker.createPackageFromTarballData(bytes);
  const result = await checker.checkPackage(files, { entrypoints: ["."] });
  expect(result).toMatchObject({ problems: [] });
});
