// How vitest tries the packed npm package in every host and bundler: `npm test -- package`.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  root: fileURLToPath(new URL("../..", import.meta.url)),
  test: {
    include: ["test/package/*.test.ts"],
    globalSetup: ["test/package/setup.ts"],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
