// torch.cuda on machines without a GPU: reasons in words, typed errors, switches, async reads.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import * as torch from "../../js/src/index.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const available = torch.cuda.isAvailable();

describe("each reason has its sentence", () => {
  // A driver that says what the test wants stands in for NVIDIA's.
  const folder = mkdtempSync(join(tmpdir(), "cresset-cuda-"));
  const script = join(folder, "why.mjs");
  beforeAll(() => {
    writeFileSync(
      join(folder, "driver.c"),
      `#include <stdlib.h>
      static int number(const char* name) { return atoi(getenv(name)); }
      int cuInit(unsigned flags) { return number("FAKE_INIT"); }
      int cuDriverGetVersion(int* v) { *v = number("FAKE_VERSION"); return 0; }
      int cuDeviceGetCount(int* n) { *n = number("FAKE_COUNT"); return 0; }`,
    );
    const args = ["-shared", "-fPIC", "-w", "driver.c", "-o", "libcuda.so.1"];
    execFileSync("cc", args, { cwd: folder });
    const index = pathToFileURL(join(root, "js/src/index.ts")).href;
    writeFileSync(
      script,
      `import * as torch from ${JSON.stringify(index)};
      let error = "";
      try { torch.ones([2], { device: "cuda" }); } catch (e) { error = e.name + ": " + e.message; }
      const sum = torch.ones([2]).sum().item();
      const { cuda } = torch;
      const found = [cuda.isAvailable(), cuda.deviceCount(), cuda.whyNot(), error, sum];
      console.log(JSON.stringify(found));`,
    );
  });

  function ask(init: number, version: number, count: number, more: Record<string, string> = {}) {
    const env = {
      ...process.env,
      LD_LIBRARY_PATH: folder,
      FAKE_INIT: String(init),
      FAKE_VERSION: String(version),
      FAKE_COUNT: String(count),
      ...more,
    };
    const args = ["--import", "tsx", script];
    const out = execFileSync(process.execPath, args, { cwd: root, env, encoding: "utf8" });
    const [usable, devices, why, error, sum] = JSON.parse(out) as [
      boolean,
      number,
      string,
      string,
      number,
    ];
    expect([usable, devices, sum]).toEqual([false, 0, 2]);
    expect(error).toContain("DeviceError: ");
    expect(error).toContain(why);
    return why;
  }

  it("an old driver", () => {
    expect(ask(0, 12040, 1)).toBe("the NVIDIA driver supports CUDA 12.4, expected at least 13.0");
  });
  it("no GPU", () => {
    expect(ask(100, 13000, 0, { CUDA_VISIBLE_DEVICES: "" })).toBe(
      'no GPU is visible: CUDA_VISIBLE_DEVICES is ""',
    );
    expect(ask(0, 13000, 0, { CUDA_VISIBLE_DEVICES: "7" })).toContain('"7"');
  });
  it("a driver that fails", () => {
    expect(ask(999, 13000, 1)).toBe("the NVIDIA driver failed to start: cuInit gave error 999");
  });
  it("a driver, but no CUDA library that fits it", () => {
    const built = existsSync(join(root, "build/release/libcresset_cuda.so"));
    const why = ask(0, 13000, 1);
    // Where CUDA's libraries are there, the library opens and its runtime refuses the false driver.
    if (built) expect(why).toMatch(/Cresset's CUDA library did not load|CUDA did not start/);
    else expect(why).toContain("Cresset's CUDA library was not built or not installed");
  });
});

describe("without a GPU", () => {
  const x = torch.ones([2]);
  const calls: Record<string, () => unknown> = {
    ones: () => torch.ones([2], { device: "cuda" }),
    "to a numbered device": () => x.to("cuda:0"),
    cuda: () => x.cuda(),
    "to, non-blocking": () => x.to("cuda", { nonBlocking: true }),
    pinMemory: () => x.pinMemory(),
    Stream: () => new torch.cuda.Stream(),
    Event: () => new torch.cuda.Event(),
    currentStream: () => torch.cuda.currentStream(),
    defaultStream: () => torch.cuda.defaultStream(0),
    currentDevice: () => torch.cuda.currentDevice(),
    setDevice: () => torch.cuda.setDevice(0),
    withDevice: () => torch.cuda.withDevice(0, () => 1),
    synchronize: () => torch.cuda.synchronize(),
    getDeviceProperties: () => torch.cuda.getDeviceProperties(),
    getDeviceName: () => torch.cuda.getDeviceName(0),
    getDeviceCapability: () => torch.cuda.getDeviceCapability("cuda:0"),
    memGetInfo: () => torch.cuda.memGetInfo(),
    resetPeakMemoryStats: () => torch.cuda.resetPeakMemoryStats(),
    setPerProcessMemoryFraction: () => torch.cuda.setPerProcessMemoryFraction(0.5),
    setAllocatorOptions: () => torch.cuda.setAllocatorOptions("expandable_segments:True"),
    MemPool: () => new torch.cuda.MemPool(),
    CUDAGraph: () => new torch.cuda.CUDAGraph().captureBegin(),
    graph: () => torch.cuda.graph(() => {}),
    makeGraphedCallables: () => torch.cuda.makeGraphedCallables((t) => t.add(1), [x]),
    getRngState: () => torch.cuda.getRngState(),
    "a generator": () => new torch.Generator("cuda"),
  };
  for (const [name, call] of Object.entries(calls)) {
    it(`${name} is a DeviceError that says why`, () => {
      if (available) return expect(() => call()).toBeTypeOf("function");
      expect(call).toThrow(torch.DeviceError);
      expect(call).toThrow(torch.cuda.whyNot() ?? "");
      expect(x.add(1).sum().item()).toBe(4);
    });
  }

  it("asking harmlessly works", () => {
    expect(torch.cuda.whyNot() === null).toBe(available);
    expect(torch.cuda.deviceCount() > 0).toBe(available);
    if (available) return;
    expect(torch.cuda.memoryAllocated()).toBe(0);
    expect(torch.cuda.maxMemoryReserved(0)).toBe(0);
    expect(torch.cuda.memoryStats()).toEqual({});
    expect(torch.cuda.memorySnapshot()).toEqual([]);
    expect(torch.cuda.isBf16Supported()).toBe(false);
    expect(torch.cuda.isCurrentStreamCapturing()).toBe(false);
    expect(x.isPinned()).toBe(false);
    torch.cuda.emptyCache();
    torch.cuda.manualSeed(1);
    torch.cuda.manualSeedAll(1n);
  });

  it("devices that are none are refused by name", () => {
    expect(() => torch.cuda.withDevice("cpu", () => 1)).toThrow(/withDevice.*CUDA device.*cpu/);
    expect(() => torch.cuda.synchronize(1.5)).toThrow(torch.DeviceError);
    expect(() => torch.cuda.memGetInfo(1000)).toThrow(torch.CressetError);
    expect(() => torch.device("cuda:x")).toThrow(torch.DeviceError);
  });
});

describe("switches", () => {
  it("have PyTorch's defaults and keep what is set", () => {
    const { cuda, cudnn } = torch.backends;
    expect(cuda.matmul.allowTf32).toBe(false);
    expect(cuda.matmul.allowFp16ReducedPrecisionReduction).toBe(true);
    expect([cudnn.allowTf32, cudnn.benchmark, cudnn.deterministic]).toEqual([true, false, false]);
    cudnn.benchmark = true;
    expect(cudnn.benchmark).toBe(true);
    cudnn.benchmark = false;
    expect(() => {
      cudnn.benchmark = 1 as unknown as boolean;
    }).toThrow(torch.ValueError);
  });

  it("setFloat32MatmulPrecision and allowTf32 are one", () => {
    expect(torch.getFloat32MatmulPrecision()).toBe("highest");
    torch.setFloat32MatmulPrecision("medium");
    expect(torch.backends.cuda.matmul.allowTf32).toBe(true);
    expect(torch.getFloat32MatmulPrecision()).toBe("medium");
    torch.backends.cuda.matmul.allowTf32 = false;
    expect(torch.getFloat32MatmulPrecision()).toBe("highest");
    expect(() => torch.setFloat32MatmulPrecision("low" as "high")).toThrow(torch.ValueError);
  });

  it("determinism and debugging", () => {
    torch.useDeterministicAlgorithms(true);
    expect(torch.areDeterministicAlgorithmsEnabled()).toBe(true);
    torch.useDeterministicAlgorithms(false);
    torch.cuda.setSyncDebugMode("warn");
    expect(torch.cuda.getSyncDebugMode()).toBe(1);
    torch.cuda.setSyncDebugMode(0);
    expect(() => torch.cuda.setSyncDebugMode("loud" as "warn")).toThrow(torch.ValueError);
  });
});

describe("reads that do not block", () => {
  it("give CPU values at once", async () => {
    const y = torch.tensor([1.5, 2.5]);
    expect([...(await y.dataAsync())]).toEqual([1.5, 2.5]);
    expect(await y.sum().itemAsync()).toBe(4);
    await expect(y.itemAsync()).rejects.toThrow(torch.ValueError);
  });
});

describe("generators", () => {
  it("of the CPU have a device", () => {
    expect(String(new torch.Generator().device)).toBe("cpu");
    expect(new torch.Generator("cpu").manualSeed(3).initialSeed()).toBe(3);
  });
});
