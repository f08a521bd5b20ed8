// The demo for everyone: by keyboard alone, on a phone, in the dark, and when something is wrong.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { demoFolder, launch, openPage, screenshot, serve, type Served } from "./chromium.js";
import { DemoPage } from "./demo_page.js";

let browser: Browser;
let served: Served;
beforeAll(async () => {
  browser = await launch();
  served = await serve(demoFolder, { plain: true });
});
afterAll(async () => {
  await browser.close();
  served.close();
});

/** Presses Tab until the element with this id, or one inside it, has the focus. */
async function tabTo({ page }: DemoPage, id: string): Promise<void> {
  for (let presses = 0; presses < 40; presses++) {
    await page.keyboard.press("Tab");
    const inside = (wanted: string) => document.activeElement?.closest(`#${wanted}`) != null;
    if (await page.evaluate(inside, id)) return;
  }
  throw new Error(`#${id} cannot be reached with Tab`);
}

test("everything works by keyboard", async () => {
  const { page, errors } = await openPage(browser, served.url);
  const demo = new DemoPage(page);
  await demo.waitFor("ready");

  await tabTo(demo, "train");
  const outline = () => page.evaluate(() => getComputedStyle(document.activeElement!).outlineStyle);
  expect(await outline()).toBe("solid");
  await page.keyboard.press("Enter");
  await demo.waitFor("training");
  await demo.waitForAccuracy(80, 60_000);
  await page.keyboard.press("Space");
  await demo.waitFor("paused");

  await tabTo(demo, "loss-chart");
  await page.keyboard.press("Home");
  expect(await demo.text("loss-caption")).toMatch(/^Step \d+: training loss \d/);
  expect(await page.locator("#spoken").textContent()).toMatch(/^Step \d+/);

  // A one: the pen goes down at the top, moves down by arrow keys and is lifted.
  await tabTo(demo, "pad");
  expect(await outline()).toBe("solid");
  await page.keyboard.press("Space");
  for (let i = 0; i < 13; i++) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Space");
  expect((await demo.verdict()).digit).toBe(1);
  await page.keyboard.press("Delete");
  expect(await demo.text("verdict")).toMatch(/Draw a digit/);

  await tabTo(demo, "samples");
  await page.keyboard.press("Enter");
  expect((await demo.verdict()).digit).toBe(0);
  expect(errors).toEqual([]);
  await page.context().close();
});

test.each([
  { name: "light", colorScheme: "light", width: 1280, height: 800 },
  { name: "dark", colorScheme: "dark", width: 1280, height: 800 },
  { name: "phone", colorScheme: "light", width: 390, height: 844 },
  { name: "small-phone-dark", colorScheme: "dark", width: 360, height: 740 },
] as const)("fits on the screen: $name", async ({ name, colorScheme, width, height }) => {
  const options = { viewport: { width, height }, colorScheme, deviceScaleFactor: 2 };
  const { page, errors } = await openPage(browser, served.url, options);
  const demo = new DemoPage(page);
  await demo.waitFor("ready");
  await page.click("#train");
  await demo.waitForStep(40);
  await page.click("#samples button:nth-child(4)");
  await demo.verdict();
  await page.click("#train");
  await demo.waitFor("paused");
  await screenshot(page, name);
  const content = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(content).toBeLessThanOrEqual(width);
  const small = await page.evaluate(() =>
    [...document.querySelectorAll("button, select, summary")]
      .filter((control) => control.checkVisibility())
      .filter((control) => control.getBoundingClientRect().height < 22)
      .map((control) => control.id),
  );
  expect(small).toEqual([]);
  expect(errors).toEqual([]);
  await page.context().close();
});

test("reduced motion is respected", async () => {
  const { page } = await openPage(browser, served.url, { reducedMotion: "reduce" });
  await new DemoPage(page).waitFor("ready");
  const transition = await page
    .locator("#bars .bar")
    .first()
    .evaluate((bar) => getComputedStyle(bar).transitionDuration);
  expect(transition).toBe("0s");
  await page.context().close();
});

/** Opens the demo in a context that something is wrong with, and returns what it says. */
async function problemOf(prepare: (page: DemoPage["page"]) => Promise<unknown>): Promise<string> {
  const context = await browser.newContext();
  const page = await context.newPage();
  await prepare(page);
  await page.goto(served.url);
  const demo = new DemoPage(page);
  await demo.waitFor("failed");
  expect(await page.locator("#problem").getAttribute("role")).toBe("alert");
  const text = await demo.text("problem-text");
  await context.close();
  return text;
}

test("trouble is told in words", async () => {
  expect(
    await problemOf((page) =>
      page.addInitScript(() => {
        WebAssembly.validate = () => false;
      }),
    ),
  ).toMatch(/no SIMD instructions/);
  expect(
    await problemOf((page) =>
      page.context().route("**/mnist.bin", (route) => route.fulfill({ status: 404 })),
    ),
  ).toMatch(/digits could not be loaded: the server answered 404/);
  expect(
    await problemOf((page) =>
      page.context().route("**/mnist.bin", (route) => route.fulfill({ body: "not digits at all" })),
    ),
  ).toMatch(/file of digits is damaged/);
  expect(
    await problemOf((page) => page.context().route("**/*.wasm", (route) => route.abort())),
  ).toMatch(/wasm/i);
  expect(
    await problemOf((page) => page.context().route("**/worker-*.js", (route) => route.abort())),
  ).toMatch(/training worker stopped/);
});

test("after trouble, one can start again", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await context.route("**/mnist.bin", (route) => route.abort());
  await page.goto(served.url);
  const demo = new DemoPage(page);
  await demo.waitFor("failed");
  await context.unroute("**/mnist.bin");
  await page.click("#restart");
  await demo.waitFor("ready");
  expect(await page.locator("#problem").isVisible()).toBe(false);
  await context.close();
});
