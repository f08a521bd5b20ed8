// How vitest finds the tests, which run against the TypeScript sources without a build.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: {
    alias: { cresset: fileURLToPath(new URL("./js/src/index.ts", import.meta.url)) },
  },
  test: {
    include: ["test/js/**/*.test.ts"],
    testTimeout: 30_000,
  },
});
