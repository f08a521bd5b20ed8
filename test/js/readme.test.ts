// The example in README.md runs as it stands, against the built package.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";

test("the example learns and prints", () => {
  const [, example] = /```ts\n([\s\S]*?)```/.exec(readFileSync("README.md", "utf8"))!;
  mkdirSync("build", { recursive: true });
  writeFileSync("build/readme-example.ts", example!);
  const args = ["--import", "tsx", "build/readme-example.ts"];
  const output = execFileSync(process.execPath, args, { encoding: "utf8" });
  const losses = [...output.matchAll(/loss (\S+)/g)].map((match) => Number(match[1]));
  expect(losses.length).toBe(5);
  // What PyTorch 1.13 prints for the same program.
  const expected = [0.07594, 0.00838, 0.00483, 0.00389, 0.00347];
  losses.forEach((loss, i) => expect(Math.abs(loss - expected[i]!)).toBeLessThan(1e-3));
  expect(output).toMatch(/tensor\(\[\[\d\.\d{4}\],\n {8}\[\d\.\d{4}\]\], grad_fn=<\w+>\)/);
});
