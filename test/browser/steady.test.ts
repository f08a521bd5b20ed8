// Ten thousand training steps in one synchronous task, each in `tidy`: memory stays as it is.
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { launch, openPage, serve } from "./chromium.js";
import type { Steadiness } from "./steady/worker.js";

let browser: Browser;
beforeAll(async () => {
  const configFile = fileURLToPath(new URL("./steady/vite.config.ts", import.meta.url));
  await build({ configFile });
  browser = await launch();
});
afterAll(() => browser.close());

test.each([{ plain: true }, { plain: false }])(
  "10,000 steps, plain server: $plain",
  async (how) => {
    const folder = fileURLToPath(new URL("../../build/steady", import.meta.url));
    const served = await serve(folder, how);
    const { page } = await openPage(browser, served.url);
    const answer = await page.waitForFunction(() => window.steadiness, null, { timeout: 60_000 });
    const found = (await answer.jsonValue()) as Steadiness;
    expect(found).not.toHaveProperty("error");
    const { heap, tensors, threads, milliseconds, firstLoss, lastLoss } = found;
    const mib = heap.map((bytes) => (bytes / 2 ** 20).toFixed(1));
    console.log(
      `${found.steps} steps, ${threads} threads: ${milliseconds.toFixed(0)} ms, ` +
        `heap ${mib[0]} to ${mib.at(-1)} MiB, ${tensors[0]} to ${tensors.at(-1)} tensors`,
    );
    expect(new Set(heap).size).toBe(1);
    expect(new Set(tensors).size).toBe(1);
    expect(lastLoss).toBeLessThan(firstLoss / 20);
    await page.context().close();
    served.close();
  },
);
