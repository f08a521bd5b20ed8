// `npm run demo`: builds the browser demo where that is needed, and serves it.
// Options: --plain (without the headers that allow threads), --port N (default 8000, or a free one)
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setup } from "./setup.mjs";
import { serveFolder } from "./static-server.mjs";
import { main, must, root, step } from "./steps.mjs";

const folder = "build/demo";

/** Bundles the page, its worker, the WebAssembly core and the digits into one static folder. */
export function buildDemo() {
  must("node_modules/.bin/vite", ["build", "--config", "examples/04-browser/vite.config.ts"]);
  return folder;
}

async function serve({ plain, port }) {
  const at = (number) => serveFolder(join(root, folder), { plain, port: number });
  const { url } = await (port ? at(Number(port)) : at(8000).catch(() => at(0)));
  console.log(`\nThe demo is at ${url} (Ctrl+C ends it).`);
  if (plain) console.log("Served without COOP and COEP, so it trains on one thread.");
}

if (process.argv[1] === import.meta.filename) {
  const { values } = parseArgs({
    options: {
      plain: { type: "boolean", default: false },
      port: { type: "string" },
    },
  });
  main(() => {
    setup({ host: "web" });
    step("demo", buildDemo);
  });
  if (!process.exitCode) await serve(values);
}
