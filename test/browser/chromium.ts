// What the browser tests share: Chromium, a server for the built pages, and pages that are watched.
import { existsSync, mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { serveFolder } from "../../tools/static-server.mjs";

const fromRoot = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
export const demoFolder = fromRoot("build/demo");
export const shotsFolder = fromRoot("build/screenshots");

const quiet = ["--disable-quic", "--no-first-run", "--disable-background-networking"];
const still = ["--disable-component-update", "--disable-sync", "--disable-gpu", "--no-sandbox"];

/** Debian's Chromium; the variable CHROMIUM names another one. */
export async function launch(): Promise<Browser> {
  const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
  if (!existsSync(executablePath)) throw new Error(`no browser at ${executablePath}`);
  return chromium.launch({ executablePath, headless: true, args: [...quiet, ...still] });
}

export interface Served {
  url: string;
  close(): void;
}

/** Serves a folder; `plain` is without the headers that allow threads. */
export async function serve(folder: string, options: { plain?: boolean } = {}): Promise<Served> {
  const { url, server } = await serveFolder(folder, options);
  return {
    url,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** A page that remembers what went wrong in it, and what it asked for from elsewhere. */
export interface Watched {
  page: Page;
  errors: string[];
  foreign: string[];
}

export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const errors: string[] = [];
  const foreign: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  page.on("request", (request) => {
    const own =
      request.url().startsWith(new URL(url).origin) || /^(data|blob):/.test(request.url());
    if (!own) foreign.push(request.url());
  });
  await page.addInitScript(watchSmoothness);
  await page.goto(url);
  return { page, errors, foreign };
}

export interface Smoothness {
  /** Milliseconds between two frames, and of tasks of the main thread that took more than 50. */
  gaps: number[];
  longTasks: number[];
}

declare global {
  interface Window {
    smoothness: Smoothness;
  }
}

/** Runs in the page, before its own scripts. */
function watchSmoothness(): void {
  const smoothness: Smoothness = { gaps: [], longTasks: [] };
  window.smoothness = smoothness;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) smoothness.longTasks.push(duration);
  }).observe({ type: "longtask" });
  let last = performance.now();
  const frame = () => {
    const now = performance.now();
    smoothness.gaps.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

/** Forgets what was seen of the frames so far. */
export function restartWatch(page: Page): Promise<void> {
  return page.evaluate(() => {
    window.smoothness.gaps.length = window.smoothness.longTasks.length = 0;
  });
}

export function smoothness(page: Page): Promise<Smoothness> {
  return page.evaluate(() => window.smoothness);
}

/** An event of Chromium's trace: the fields that are read here. */
interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  /** Processor time of the thread, in microseconds. */
  tdur?: number;
  args?: { name?: string };
}

/**
 * The longest tasks of a page's main thread while `work` ran, in milliseconds of processor time:
 * unlike the wall clock, that does not count the time in which the machine did something else.
 */
export async function mainThreadTasks(
  browser: Browser,
  page: Page,
  work: () => Promise<void>,
): Promise<number[]> {
  await browser.startTracing(page, { categories: ["toplevel"] });
  let trace: Buffer;
  try {
    await work();
  } finally {
    trace = await browser.stopTracing();
  }
  const { traceEvents } = JSON.parse(trace.toString()) as { traceEvents: TraceEvent[] };
  const thread = ({ pid, tid }: TraceEvent) => `${pid}/${tid}`;
  const mains = traceEvents.filter(
    ({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain",
  );
  const isMain = new Set(mains.map(thread));
  return traceEvents
    .filter((event) => event.name.endsWith("RunTask") && isMain.has(thread(event)))
    .map(({ tdur }) => (tdur ?? 0) / 1000)
    .sort((a, b) => b - a);
}

export async function screenshot(page: Page, name: string): Promise<void> {
  mkdirSync(shotsFolder, { recursive: true });
  await page.screenshot({ path: `${shotsFolder}/${name}.png`, fullPage: true });
}
