// Serves the user's pages with Vite's development server: node vite-dev.mjs; prints the address.
import { createServer } from "vite";

const headers = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};
const server = await createServer({
  configFile: false,
  logLevel: "error",
  server: { port: 0, headers },
});
await server.listen();
console.log(`${server.resolvedUrls.local[0]}pages/index.html`);
