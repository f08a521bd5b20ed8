// Devices by name, and what is said where CUDA cannot be used or tensors lie on several devices.
import { describe, expect, test } from "vitest";
import * as torch from "../../js/src/index.js";

/** A function's error, or null. */
function errorOf(f: () => unknown): Error | null {
  try {
    f();
    return null;
  } catch (error) {
    return error as Error;
  }
}

describe("devices", () => {
  test("are named as in PyTorch", () => {
    expect(String(torch.device("cuda"))).toBe("cuda");
    expect(torch.device("cuda").index).toBeNull();
    expect(String(torch.device("cuda:3"))).toBe("cuda:3");
    expect(torch.device("cuda:3").index).toBe(3);
    expect(String(torch.device("cpu:0"))).toBe("cpu");
    expect(torch.tensor([1]).isCuda).toBe(false);
    expect(() => torch.device("gpu")).toThrow(torch.DeviceError);
  });

  test("a CUDA device that cannot be used says why, everywhere", () => {
    const x = torch.tensor([1, 2]);
    const calls = [
      () => torch.zeros([2], { device: "cuda" }),
      () => torch.arange(3, { device: "cuda" }),
      () => torch.tensor([1, 2], { device: "cuda:0" }),
      () => x.cuda(),
      () => x.cuda(0),
      () => x.to("cuda"),
      () => x.to({ device: "cuda" }),
    ];
    for (const call of calls) {
      const error = errorOf(call);
      if (error === null) continue; // a machine with a GPU
      expect(error).toBeInstanceOf(torch.DeviceError);
      expect(error.message).toMatch(/CUDA is not available: .+/);
    }
  });

  test("tensors of two devices are refused by name", () => {
    const a = torch.tensor([1, 2]);
    const b = torch.empty([2], { device: "meta" });
    expect(() => a.add(b)).toThrow("add: expected all tensors on one device, got cpu and meta");
    expect(() => torch.cat([b, a])).toThrow("expected all tensors on one device, got meta and cpu");
  });
});
