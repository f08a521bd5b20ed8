// Pages built by Vite, webpack and esbuild from the installed package, run in Chromium.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, expectDrawn, expectTrained } from "./answer.js";
import { answerOf, launch, serve } from "./browser.js";
import { here, packages, runAs, users } from "./places.js";

interface PageAnswer {
  page: Answer & { threads: number };
  worker?: Answer & { threads: number };
}

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(async () => await browser?.close());

/** Serves a folder, opens a page of it and checks what both its threads trained. */
async function trainedPage(folder: string, name: string, isolated: boolean) {
  const [server, address] = await serve(folder, isolated);
  try {
    return expectAnswer(await answerOf(browser, `${address}/${name}`));
  } finally {
    server.close();
  }
}

function expectAnswer(answer: unknown): PageAnswer {
  const { page, worker } = answer as PageAnswer;
  for (const each of worker ? [page, worker] : [page]) {
    expectTrained(each);
    expectDrawn(each);
  }
  return { page, worker };
}

describe.each(["vite", "webpack", "esbuild"])("%s", (bundler) => {
  const folder = `${packages}/${bundler}`;

  beforeAll(async () => {
    const { stderr } = await runAs("plain", [
      process.execPath,
      `${here}bundlers/${bundler}.mjs`,
      folder,
    ]);
    expect(stderr).toBe("");
    if (bundler !== "vite") copyFileSync(`${users.plain}/pages/index.html`, `${folder}/index.html`);
  });

  test("a page and its worker train", async () => {
    const { page, worker } = await trainedPage(folder, "index.html", false);
    expect([page.threads, worker!.threads]).toEqual([1, 1]);
  });

  test("an isolated page and its worker train with threads", async () => {
    const { page, worker } = await trainedPage(folder, "index.html", true);
    expect(page.threads).toBe(availableParallelism());
    expect(worker!.threads).toBe(availableParallelism());
  });
});

test("a page without a bundler", async () => {
  const { page } = await trainedPage(users.plain, "pages/plain.html", true);
  expect(page.threads).toBe(availableParallelism());
});

test("vite: a page that hands the files' addresses to init", async () => {
  const { page } = await trainedPage(`${packages}/vite`, "urls.html", true);
  expect(page.threads).toBe(2);
});

test("vite's development server", async () => {
  const script = `${here}bundlers/vite-dev.mjs`;
  const server = spawn(process.execPath, [script], { cwd: users.plain });
  try {
    const [address] = (await once(server.stdout, "data")) as [Buffer];
    const { page } = expectAnswer(await answerOf(browser, String(address).trim()));
    expect(page.threads).toBe(availableParallelism());
  } finally {
    server.kill();
  }
});
