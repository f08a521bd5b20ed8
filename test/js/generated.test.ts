// The generated files must be what the built core would generate.
import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { fileURLToPath } from "node:url";

it("keeps ops.gen.ts and docs/ops.md up to date", () => {
  const script = fileURLToPath(new URL("../../js/gen.mjs", import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, [script, "--check"], { encoding: "utf8" });
  expect(stderr).toBe("");
  expect(status).toBe(0);
});
