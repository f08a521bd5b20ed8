// The demo as a person uses it: it learns, reads a drawing, pauses, resets, and never stutters.
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  demoFolder,
  launch,
  mainThreadTasks,
  openPage,
  restartWatch,
  screenshot,
  serve,
  smoothness,
  type Served,
  type Smoothness,
  type Watched,
} from "./chromium.js";
import { DemoPage, drawings } from "./demo_page.js";

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

/** The page's main thread may not be busy for longer, in milliseconds. */
const longestTask = 50;

/** What a person would notice is the wall clock; on a busy machine it shows other programs too. */
function report(where: string, { gaps, longTasks }: Smoothness, tasks: number[]): void {
  const sorted = gaps.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))]!.toFixed(1);
  console.log(
    `${where}: ${gaps.length} frames, gap median ${at(0.5)} ms, 99 % ${at(0.99)} ms, ` +
      `longest ${at(1)} ms; tasks over ${longestTask} ms: ` +
      (longTasks.length === 0 ? "none" : longTasks.map((ms) => `${ms.toFixed(0)} ms`).join(", ")) +
      `; longest task in processor time ${tasks[0]?.toFixed(1)} ms of ${tasks.length} tasks`,
  );
}

/** Draws three digits and expects each to be read. */
async function readDrawings(page: Page, demo: DemoPage): Promise<void> {
  for (const [name, digit] of [
    ["seven", 7],
    ["zero", 0],
    ["three", 3],
  ] as const) {
    await page.click("#clear");
    await demo.draw(drawings[name]);
    expect((await demo.verdict()).digit, name).toBe(digit);
  }
  expect(await demo.text("verdict")).toMatch(/3 \(\d+\s%\)$/);
  expect(Number.parseFloat(await demo.text("latency"))).toBeLessThan(500);
}

async function pauseAndReset(page: Page, demo: DemoPage): Promise<void> {
  await page.click("#train");
  await demo.waitFor("paused");
  const step = await demo.number("step");
  await page.waitForTimeout(400);
  expect(await demo.number("step")).toBe(step);
  await demo.waitForText("loss-caption", ` in ${step.toLocaleString("en")} steps`);
  await page.click("#train");
  await demo.waitForStep(step + 20);
  await page.click("#reset");
  await demo.waitFor("ready");
  expect(await demo.number("step")).toBe(0);
  expect(await demo.text("loss-caption")).toBe("Nothing to show yet.");
  expect(await demo.text("number-accuracy")).toBe("–");
}

describe.each([
  { name: "isolated server, threads", plain: false },
  { name: "plain server, one thread", plain: true },
])("$name", ({ plain }) => {
  let served: Served;
  let watched: Watched;
  let demo: DemoPage;

  beforeAll(async () => {
    served = await serve(demoFolder, { plain });
    watched = await openPage(browser, served.url);
    demo = new DemoPage(watched.page);
    await demo.waitFor("ready");
  });
  afterAll(async () => {
    await watched.page.context().close();
    served.close();
  });

  test("says how it runs", async () => {
    expect(await watched.page.evaluate(() => crossOriginIsolated)).toBe(!plain);
    const threads = await demo.number("threads");
    if (plain) expect(threads).toBe(1);
    else expect(threads).toBeGreaterThan(1);
    expect(await watched.page.locator("#threads-hint").isVisible()).toBe(plain);
    expect(await demo.text("status")).toMatch(/20,000 digits to learn from, 2,000/);
  });

  test("learns to read 95 % of the test images without blocking the page", async () => {
    await restartWatch(watched.page);
    const tasks = await mainThreadTasks(browser, watched.page, async () => {
      await watched.page.click("#train");
      await demo.waitForAccuracy(95, 60_000);
    });
    report(plain ? "plain" : "isolated", await smoothness(watched.page), tasks);
    expect(tasks.length).toBeGreaterThan(100);
    expect(tasks[0]).toBeLessThan(longestTask);
    expect(await demo.number("speed")).toBeGreaterThan(100);
    expect(await demo.text("loss-caption")).toMatch(/^From \d.* to 0\.\d+ in \d+ steps/);
  });

  test("reads what is drawn while it trains", async () => {
    await readDrawings(watched.page, demo);
    await screenshot(watched.page, plain ? "plain" : "isolated");
  });
  test("pauses, goes on and resets", () => pauseAndReset(watched.page, demo));

  test("asked nobody else for anything, and nothing went wrong", () => {
    expect(watched.foreign).toEqual([]);
    expect(watched.errors).toEqual([]);
  });
});
