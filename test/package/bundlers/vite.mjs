// Builds the user's pages with Vite: node vite.mjs OUT.
import { build } from "vite";

await build({
  root: "pages",
  base: "./",
  configFile: false,
  logLevel: "error",
  build: {
    outDir: process.argv[2],
    emptyOutDir: true,
    rolldownOptions: { input: ["pages/index.html", "pages/urls.html"] },
  },
});
