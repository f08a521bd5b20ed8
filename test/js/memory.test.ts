// Memory in synchronous loops: nothing is disposed, and it stays bounded.
import { describe, expect, it } from "vitest";
import * as torch from "cresset";

const MiB = 2 ** 20;

describe("memory policy", () => {
  it("bounds garbage in a synchronous loop", () => {
    torch.memory.collect();
    torch.memory.resetPeak();
    const before = torch.memory.stats();
    for (let i = 0; i < 2000; i++) torch.empty(MiB / 4);
    const after = torch.memory.stats();
    expect(after.minorCollections).toBeGreaterThan(before.minorCollections);
    expect(after.peakAllocated - before.allocated).toBeLessThan(2 * after.budget);
  });

  it("frees a graph that is dropped without backward", () => {
    torch.memory.collect();
    const before = torch.memory.stats().allocated;
    for (let i = 0; i < 200; i++) {
      const x = torch.ones(1000, { requiresGrad: true });
      x.mul(x).exp().sum();
    }
    torch.memory.collect();
    expect(torch.memory.stats().allocated - before).toBeLessThan(MiB);
  });

  it("keeps what is still reachable", () => {
    const kept = Array.from({ length: 50 }, (_, i) => torch.full([100], i));
    for (let i = 0; i < 40_000; i++) torch.empty(16);
    torch.memory.collect();
    kept.forEach((t, i) => expect(t.index(7).item()).toBe(i));
  });

  it("frees at once on dispose, harmlessly when repeated", () => {
    torch.memory.collect();
    const before = torch.memory.stats().allocated;
    const t = torch.empty(MiB);
    const view = t.narrow(0, 0, 4);
    t.dispose();
    t.dispose();
    view.fill_(3);
    expect(view.tolist()).toEqual([3, 3, 3, 3]);
    view.dispose();
    torch.memory.collect();
    expect(torch.memory.stats().allocated).toBeLessThanOrEqual(before);
    expect(() => t.add(1)).toThrow(/add.*disposed/);
  });

  it("recovers from running out", () => {
    torch.memory.collect();
    torch.memory.emptyCache();
    torch.memory.setLimit(torch.memory.stats().reserved + 64 * MiB);
    try {
      const kept: torch.Tensor[] = [];
      expect(() => {
        for (let i = 0; i < 100; i++) kept.push(torch.empty(MiB));
      }).toThrow(torch.OutOfMemoryError);
      kept.forEach((t) => t.dispose());
      for (let i = 0; i < 100; i++) torch.empty(MiB);
    } finally {
      torch.memory.setLimit(0);
    }
  });
});
