// The browser's entry on the WebAssembly core: init, its errors in words, memory that grows.
import { existsSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as torch from "../../js/src/web.js";

const module = fileURLToPath(new URL("../../dist/wasm/cresset.wasm", import.meta.url));

let server: Server;
let address: string;
beforeAll(async () => {
  server = createServer((request, response) => {
    const type = request.url === "/page/cresset.wasm" ? "text/html" : "application/wasm";
    response.setHeader("content-type", type);
    if (request.url === "/none/cresset.wasm") response.statusCode = 404;
    response.end("not a module");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

describe.runIf(existsSync(module))("the WebAssembly host", () => {
  test("an operator before init says what to do", () => {
    expect(() => torch.ones([2])).toThrow(torch.CressetError);
    expect(() => torch.ones([2])).toThrow("await torch.init()");
  });

  test.each([
    ["/none/", /could not fetch .*\/none\/cresset.wasm: status 404/],
    ["/page/", /expected a WebAssembly module at .*got a page/],
    ["/bad/cresset.wasm", /\/bad\/cresset.wasm does not compile/],
  ])("init says why it fails: %s", async (path, message) => {
    const failure = torch.init({ wasmPath: address + path, threads: 1 });
    await expect(failure).rejects.toThrow(torch.CressetError);
    await expect(failure).rejects.toThrow(message);
  });

  test("init takes the bytes of the module, and may be called again", async () => {
    const wasmBinary = readFileSync(module);
    await Promise.all([torch.init({ wasmBinary }), torch.init({ wasmBinary })]);
    await torch.init();
    expect(torch.getNumThreads()).toBe(1);
    expect(
      torch
        .ones([2, 2])
        .matmul(torch.ones([2, 2]))
        .tolist(),
    ).toEqual([
      [2, 2],
      [2, 2],
    ]);
  });

  test("memory grows under the frame", () => {
    const large = torch.full([4, 1024, 1024], 3);
    expect(large.add(1).sum().item()).toBe(4 * 4 * 1024 * 1024);
  });

  test("addresses above 2 GiB hold right numbers", () => {
    const gibibyte = 2 ** 30;
    const low = [1, 2].map(() => torch.empty([gibibyte], { dtype: torch.uint8 }));
    const high = torch.arange(100_000);
    expect(high.add(1).sum().item()).toBe((100_000 * 100_001) / 2);
    expect(high.data()[99_999]).toBe(99_999n);
    for (const t of [...low, high]) t.dispose();
    torch.memory.emptyCache();
  });

  test("memory that cannot be had is an OutOfMemoryError, and the core goes on", () => {
    expect(() => torch.empty([2 ** 33])).toThrow(torch.OutOfMemoryError);
    const held: torch.Tensor[] = [];
    const fill = () => {
      for (;;) held.push(torch.empty([2 ** 28], { dtype: torch.uint8 }));
    };
    expect(fill).toThrow(torch.OutOfMemoryError);
    expect(held.length).toBeGreaterThan(8);
    for (const t of held) t.dispose();
    torch.memory.emptyCache();
    expect(torch.ones([3]).sum().item()).toBe(3);
  });
});
