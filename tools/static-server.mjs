// A small static file server on the loopback address, with or without the isolation headers.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".map": "application/json",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

/** With these a page may share memory between threads (COOP and COEP). */
const isolation = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
};

/** The file that a request asks for, or null when it leads out of the folder. */
function fileOf(folder, url) {
  let path;
  try {
    path = decodeURIComponent(new URL(url, "http://localhost").pathname);
  } catch {
    return null;
  }
  const file = join(folder, normalize(path));
  if (path.includes("\0") || !file.startsWith(folder)) return null;
  return path.endsWith("/") ? join(file, "index.html") : file;
}

async function answer(folder, headers, request, response) {
  const file = fileOf(folder, request.url);
  const found = file === null ? null : await stat(file).catch(() => null);
  if (!["GET", "HEAD"].includes(request.method) || !found?.isFile()) {
    response.writeHead(404, { ...headers, "content-type": "text/plain" }).end("not found\n");
    return;
  }
  response.writeHead(200, {
    ...headers,
    "content-type": types[extname(file)] ?? "application/octet-stream",
    "content-length": found.size,
    "cache-control": "no-cache",
  });
  if (request.method === "HEAD") response.end();
  else
    createReadStream(file)
      .on("error", () => response.destroy())
      .pipe(response);
}

/**
 * Serves `folder` until the server is closed; `port` 0 takes a free one. `plain` leaves the
 * isolation headers out, as most static hosts do.
 * @returns {Promise<{ url: string, server: import("node:http").Server }>}
 */
export function serveFolder(folder, { port = 0, plain = false } = {}) {
  const headers = plain ? {} : isolation;
  const server = createServer((request, response) => {
    answer(folder, headers, request, response).catch(() => response.destroy());
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      resolve({ url: `http://localhost:${server.address().port}/`, server });
    });
  });
}
