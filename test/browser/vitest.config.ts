// The tests that drive a real browser: one at a time, since they measure how smooth the page is.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    dir: import.meta.dirname,
    include: ["**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 90_000,
    hookTimeout: 60_000,
  },
});
