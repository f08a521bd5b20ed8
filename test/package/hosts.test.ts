// The installed package in every host: Node 20, 22, 24, Deno and Bun, with and without the addon.
import { describe, expect, test } from "vitest";
import { type Answer, expectDrawn, expectTrained } from "./answer.js";
import { hosts, runAs, type User } from "./places.js";

for (const user of ["native", "plain"] as User[]) {
  describe.each(Object.entries(hosts))(`${user} install, %s`, (_, command) => {
    test.each(["esm.mjs", "commonjs.cjs"])("%s trains", async (program) => {
      const { stdout, stderr } = await runAs(user, [...command, program]);
      const answer = JSON.parse(stdout) as Answer;
      expectTrained(answer);
      expectDrawn(answer);
      expectWarning(user, stderr);
    });

    test("both forms of the package are one", async () => {
      const { stdout } = await runAs(user, [...command, "both.mjs"]);
      expect(JSON.parse(stdout)).toEqual({ differ: [], sum: [2, 2], isTensor: true });
    });

    test("worker threads train beside the main thread", async () => {
      const { stdout } = await runAs(user, [...command, "workers.mjs"]);
      const answers = JSON.parse(stdout) as Answer[];
      expect(answers).toHaveLength(3);
      answers.forEach(expectTrained);
    });
  });
}

describe("cresset doctor", () => {
  const doctor = ["npx", "--no", "cresset", "doctor"];

  test("finds the addon's package", async () => {
    const { stdout } = await runAs("native", doctor);
    expect(stdout).toMatch(/^host +native addon, \d+ threads?$/m);
    expect(stdout).toMatch(/^addon .*node_modules\/@cresset\/[\w-]+\/cresset\.node: loaded$/m);
    expect(stdout).toMatch(/^check +addition, product and gradient are right$/m);
  });

  test("says why there is no addon, and finds both WebAssembly modules", async () => {
    const { stdout } = await runAs("plain", doctor);
    expect(stdout).toMatch(/^host +WebAssembly, \d+ threads?, since no addon was loaded$/m);
    expect(stdout).toMatch(/^addon +@cresset\/[\w-]+: not installed$/m);
    expect(stdout.match(/\.wasm: [\d.]+ MiB, compiles$/gm)).toHaveLength(2);
    expect(stdout).toMatch(/^check +addition, product and gradient are right$/m);
  });

  test("fails with the reason where no core loads", async () => {
    const failing = runAs("native", doctor, { CRESSET_ADDON: "/nowhere.node" });
    await expect(failing).rejects.toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^host +none: .*CRESSET_ADDON=\/nowhere\.node: not there$/m),
    });
  });
});

test("the addon's package brings the libraries that it needs", async () => {
  const script = `require("cresset"); console.log(process.report.getReport().sharedObjects.join())`;
  const { stdout } = await runAs("native", [process.execPath, "-e", script]);
  const brought = /node_modules\/@cresset\/[\w-]+\/lib(dnnl|gomp|hwy)\.so/g;
  expect(stdout.match(brought)).toHaveLength(3);
});

/** Without the addon there is one line that says so; else nothing is printed. */
function expectWarning(user: User, stderr: string): void {
  const lines = stderr.split("\n").filter((line) => line !== "");
  if (user === "native") expect(lines).toEqual([]);
  else expect(lines).toEqual([expect.stringContaining("WebAssembly")]);
}
