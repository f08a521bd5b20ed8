// A browser for the tests of the bundlers, and a server for what they build.
import { createReadStream, existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { chromium, type Browser } from "playwright-core";

const types: Record<string, string> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
};

/** What a server sends so that a page may share memory between threads. */
const isolation = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

/** Serves a folder on this machine; a page is allowed threads when it is `isolated`. */
export async function serve(folder: string, isolated: boolean): Promise<[Server, string]> {
  const server = createServer((request, response) => {
    const path = join(folder, new URL(request.url!, "http://localhost").pathname);
    if (!existsSync(path)) {
      response.writeHead(404).end();
      return;
    }
    const type = types[extname(path)] ?? "application/octet-stream";
    const cache = { "Cache-Control": "max-age=3600" }; // as servers of built files do
    response.writeHead(200, { "Content-Type": type, ...cache, ...(isolated ? isolation : {}) });
    createReadStream(path).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return [server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`];
}

export async function launch(): Promise<Browser> {
  const quiet = ["--disable-background-networking", "--disable-component-update"];
  const args = [...quiet, "--disable-gpu", "--disable-quic", "--disable-sync", "--no-first-run"];
  return await chromium.launch({
    executablePath: "/usr/bin/chromium",
    args,
    chromiumSandbox: false,
  });
}

/** Opens a page and returns what its promise `answer` resolves to, or the first error. */
export async function answerOf(browser: Browser, address: string): Promise<unknown> {
  const page = await browser.newPage();
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("console", (message) => problems.push(message.text()));
  try {
    await page.goto(address);
    const ready = () => "answer" in globalThis;
    await page.waitForFunction(ready, undefined, { timeout: 20_000 });
    return await page.evaluate(() => (globalThis as { answer?: unknown }).answer);
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${problems.join("\n")}`);
  } finally {
    await page.close();
  }
}
