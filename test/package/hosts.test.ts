// The installed package in every host: Node 20, 22 and 24, Deno and Bun, with and without the addon.
import { describe, expect, test } from "vitest";
import { hosts, runAs, type User } from "./places.js";

interface Answer {
  sum: number[];
  product: number[][];
  gradient: number[];
  random: number[];
  weight: number[];
  loss: number;
}

function expectTrained(answer: Answer): void {
  expect(answer.sum).toEqual([4, 6]);
  expect(answer.product).toEqual([
    [3, 3],
    [3, 3],
  ]);
  expect(answer.gradient).toEqual([2, 4]);
  expect(answer.weight[0]).toBeCloseTo(2, 4);
  expect(answer.weight[1]).toBeCloseTo(-3, 4);
  expect(answer.loss).toBeLessThan(1e-9);
}

// What PyTorch draws next after the program's draws from seed 0.
const expectDrawn = ({ random }: Answer) => {
  expect(random[0]).toBeCloseTo(1.0909277, 6);
  expect(random[1]).toBeCloseTo(-1.4059384, 6);
};

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

/** Without the addon there is one line that says so; else nothing is printed. */
function expectWarning(user: User, stderr: string): void {
  const lines = stderr.split("\n").filter((line) => line !== "");
  if (user === "native") expect(lines).toEqual([]);
  else expect(lines).toEqual([expect.stringContaining("WebAssembly")]);
}
