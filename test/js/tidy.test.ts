// tidy, keep, dispose: what is freed when, and that nothing else is.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as torch from "cresset";

const { nn, optim } = torch;

/** Tensors and bytes that stay after `fn`, which must leave nothing to the collector. */
function growth(fn: () => void): { tensors: number; allocated: number } {
  torch.memory.collect();
  const before = torch.memory.stats();
  fn();
  const after = torch.memory.stats();
  return {
    tensors: after.tensors - before.tensors,
    allocated: after.allocated - before.allocated,
  };
}
const nothing = { tensors: 0, allocated: 0 };

describe("tidy", () => {
  it("frees what was made and returns what was returned", () => {
    let y!: torch.Tensor;
    let lost!: torch.Tensor;
    const stays = growth(() => {
      y = torch.tidy(() => {
        lost = torch.ones(1000);
        return lost.add(1).mul(2);
      });
    });
    expect(stays.tensors).toBe(1);
    expect(stays.allocated).toBeLessThan(8192);
    expect(y.sum().item()).toBe(4000);
    expect(lost.isDisposed).toBe(true);
    expect(() => lost.add(1)).toThrow(torch.ValueError);
    expect(() => lost.add(1)).toThrow(/^add: .*freed.*tidy/);
    expect(() => lost.data()).toThrow(/freed/);
    expect(() => torch.cat([y, lost])).toThrow(/^cat: .*freed/);
    expect(String(lost)).toBe("tensor(<disposed>)");
    lost.dispose();
  });

  it("finds tensors in arrays, objects, Maps, Sets, class instances and named results", () => {
    class Pair {
      constructor(readonly left: torch.Tensor) {}
    }
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    const made = torch.tidy(() => {
      cyclic["t"] = torch.tensor(9);
      const deep: unknown[] = [torch.tensor(8)];
      let top = deep;
      for (let i = 0; i < 20_000; i++) top = [top];
      return {
        list: [torch.tensor(1), [torch.tensor(2)]],
        map: new Map<unknown, unknown>([["a", { x: torch.tensor(3) }]]),
        keys: new Map([[torch.tensor(4), 1]]),
        set: new Set([torch.tensor(5)]),
        pair: new Pair(torch.tensor(6)),
        top: torch.tensor([1, 7]).max(0),
        numbers: new Float64Array(1000),
        text: "text",
        nothing: null,
        cyclic,
        deep,
        nested: top,
      };
    });
    expect(made.list.flat().map((t) => t.item())).toEqual([1, 2]);
    expect((made.map.get("a") as { x: torch.Tensor }).x.item()).toBe(3);
    expect([...made.keys.keys()][0]!.item()).toBe(4);
    expect([...made.set][0]!.item()).toBe(5);
    expect(made.pair.left.item()).toBe(6);
    expect(made.top.values.item()).toBe(7);
    expect((made.deep[0] as torch.Tensor).item()).toBe(8);
    expect((cyclic["t"] as torch.Tensor).item()).toBe(9);
  });

  it("gives what an inner tidy returns to the outer one", () => {
    let inner!: torch.Tensor;
    const stays = growth(() => {
      const value = torch.tidy(() => {
        const before = torch.ones(3);
        inner = torch.tidy(() => {
          const again = torch.tidy(() => [before, torch.ones(3).mul(2)] as const);
          return again[0].add(again[1]);
        });
        expect(before.sum().item()).toBe(3);
        return inner.sum().item();
      });
      expect(value).toBe(9);
    });
    expect(stays).toEqual(nothing);
    expect(inner.isDisposed).toBe(true);
  });

  it("returns tensors from outside without touching them", () => {
    const mine = torch.ones(3);
    for (let i = 0; i < 1000; i++) expect(torch.tidy(() => mine)).toBe(mine);
    const twice = torch.tidy(() => torch.tidy(() => mine));
    torch.memory.collect();
    expect(twice.sum().item()).toBe(3);
  });

  it("lets the collector have what it returned", () => {
    torch.memory.collect();
    const before = torch.memory.stats().tensors;
    for (let i = 0; i < 1000; i++) torch.tidy(() => torch.ones(10));
    for (let i = 0; i < 1000; i++) torch.tidy(() => torch.keep(torch.ones(10)));
    torch.memory.collect();
    expect(torch.memory.stats().tensors - before).toBeLessThan(10);
  });

  it("keeps what is given to keep, through all tidies", () => {
    let a!: torch.Tensor;
    let b!: { list: torch.Tensor[] };
    torch.tidy(() => {
      torch.tidy(() => {
        a = torch.keep(torch.full([4], 3));
        b = torch.keep({ list: [torch.full([4], 4)] });
        torch.keep(a);
      });
    });
    torch.memory.collect();
    torch.tidy(() => Array.from({ length: 100 }, () => torch.zeros(4))).forEach((t) => t.dispose());
    expect(a.tolist()).toEqual([3, 3, 3, 3]);
    expect(b.list[0]!.tolist()).toEqual([4, 4, 4, 4]);
    const outside = torch.ones(1);
    expect(torch.keep(outside)).toBe(outside);
    a.dispose();
    expect(() => torch.keep(a)).toThrow(/^keep: .*freed/);
  });

  it("frees everything when its function throws, and passes the error on", () => {
    const stays = growth(() => {
      for (let i = 0; i < 1000; i++) {
        expect(() =>
          torch.tidy(() => {
            torch.ones(10);
            return torch.tidy(() => {
              torch.ones(10).add(torch.ones(11));
            });
          }),
        ).toThrow(torch.ShapeError);
      }
    });
    expect(stays).toEqual(nothing);
    expect(torch.tidy(() => torch.ones(3).sum().item())).toBe(3);
    const thrown = { not: "an error" };
    expect(() =>
      torch.tidy(() => {
        throw thrown;
      }),
    ).toThrow(thrown as never);
  });

  it("survives a recursion without end", () => {
    const stays = growth(() => {
      const deeper = (): torch.Tensor => torch.tidy(() => torch.ones(2).add(deeper()));
      expect(deeper).toThrow(RangeError);
      torch.tidy(() => torch.ones(2));
    });
    expect(stays.tensors).toBeLessThanOrEqual(1);
  });

  it("refuses async functions before they run", () => {
    let ran = false;
    const stays = growth(() => {
      expect(() =>
        torch.tidy(async () => {
          ran = true;
        }),
      ).toThrow(/tidy: expected a synchronous function.*await/i);
    });
    expect(ran).toBe(false);
    expect(stays).toEqual(nothing);
  });

  it("refuses a promise, and frees nothing under it before it is done", async () => {
    torch.memory.collect();
    const before = torch.memory.stats().tensors;
    let seen: unknown;
    let promise!: Promise<void>;
    const work = async (a: torch.Tensor): Promise<void> => {
      await Promise.resolve();
      seen = a.add(1).tolist();
    };
    expect(() =>
      torch.tidy(() =>
        torch.tidy(() => {
          promise = work(torch.ones(2));
          return promise;
        }),
      ),
    ).toThrow(/tidy: .*promise/);
    await promise;
    await new Promise((done) => setTimeout(done));
    expect(seen).toEqual([2, 2]);
    torch.memory.collect();
    expect(torch.memory.stats().tensors).toBe(before);
    const failing = () => torch.tidy(() => Promise.reject(new Error("handled by tidy")));
    expect(failing).toThrow(torch.ValueError);
    await new Promise((done) => setTimeout(done));
  });

  it("never reads another tensor through a freed one", () => {
    const stale: torch.Tensor[] = [];
    for (let i = 0; i < 3000; i++) {
      torch.tidy(() => {
        stale.push(torch.full([2], i));
        return null;
      });
    }
    const live = Array.from({ length: 10 }, () => torch.zeros(2));
    for (const t of stale) expect(() => t.item()).toThrow(/freed/);
    expect(live.length).toBe(10);
  });

  it("runs long loops inside one tidy in bounded memory", () => {
    torch.memory.collect();
    torch.memory.resetPeak();
    const before = torch.memory.stats().allocated;
    torch.tidy(() => {
      for (let i = 0; i < 2000; i++) torch.empty(2 ** 18);
      for (let i = 0; i < 30_000; i++) torch.tidy(() => torch.empty(4));
      return null;
    });
    const { peakAllocated, budget, tensors } = torch.memory.stats();
    expect(peakAllocated - before).toBeLessThan(2 * budget);
    expect(tensors).toBeLessThan(20_000);
  });
});

describe("dispose", () => {
  it("may be repeated, and leaves the base of a view alone", () => {
    const base = torch.ones([4]);
    const view = base.narrow(0, 0, 2);
    view.dispose();
    view.dispose();
    expect(view.isDisposed).toBe(true);
    expect(() => view.add(1)).toThrow(/^add: .*"self".*disposed/);
    expect(base.tolist()).toEqual([1, 1, 1, 1]);
    torch.dispose(base, { list: [view, base] }, null);
    expect(base.isDisposed).toBe(true);
  });

  it("works through Symbol.dispose", () => {
    const stays = growth(() => {
      const t = torch.ones(1000);
      t[Symbol.dispose]();
      t[Symbol.dispose]();
    });
    expect(stays.allocated).toBe(0);
    const inside = growth(() => {
      torch
        .tidy(() => {
          const t = torch.ones(1000);
          t.dispose();
          return torch.ones(1000);
        })
        [Symbol.dispose]();
    });
    expect(inside.allocated).toBe(0);
  });
});

describe("tidy with modules and optimizers", () => {
  const batch = () => torch.randn([8, 6]);

  class Net extends nn.Module {
    a = new nn.Linear(6, 12);
    norm = new nn.BatchNorm1d(12);
    drop = new nn.Dropout(0.3);
    b = new nn.Linear(12, 3);
    constructor() {
      super();
      this.registerBuffer("mean", torch.zeros([3]));
    }
    declare mean: torch.Tensor;
    forward(x: torch.Tensor): torch.Tensor {
      const y = this.b(this.drop(this.norm(this.a(x)).relu()));
      this.mean = this.mean.mul(0.9).add(y.detach().mean(0), { alpha: 0.1 });
      return y;
    }
  }

  const optimizers: [string, (p: torch.nn.Parameter[]) => torch.optim.Optimizer<never>][] = (
    [
      "SGD",
      "Adam",
      "AdamW",
      "NAdam",
      "RAdam",
      "ASGD",
      "Rprop",
      "Adagrad",
      "Adadelta",
      "Adamax",
      "RMSprop",
      "Adafactor",
      "Muon",
    ] as const
  )
    .filter((name) => name in optim)
    .map((name) => [
      name,
      (p) => {
        const list = name === "Muon" ? p.filter((x) => x.ndim === 2) : p;
        const options = name === "SGD" ? { lr: 0.01, momentum: 0.9 } : {};
        return new optim[name](list, options as never) as never;
      },
    ]);

  it.each(optimizers)("trains with %s as without tidy", (_, make) => {
    const run = (scope: <R>(fn: () => R) => R) => {
      torch.manualSeed(3);
      const net = scope(() => new Net());
      const optimizer = scope(() => make(net.parameters()));
      const losses: number[] = [];
      for (let i = 0; i < 6; i++) {
        const loss = scope(() => {
          optimizer.zeroGrad();
          const value = net(batch()).square().mean();
          value.backward();
          optimizer.step();
          return value;
        });
        losses.push(Number(loss.item()));
      }
      return { losses, mean: net.mean.tolist(), state: net.stateDict() };
    };
    const plain = run((fn) => fn());
    const tidied = run(torch.tidy);
    expect(tidied.losses).toEqual(plain.losses);
    expect(tidied.mean).toEqual(plain.mean);
    for (const [key, value] of Object.entries(plain.state)) {
      expect(tidied.state[key]!.tolist()).toEqual(value.tolist());
    }
  });

  it("trains with LBFGS, whose closure runs inside step", () => {
    torch.manualSeed(0);
    const x = torch.randn([20, 3]);
    const y = x.matmul(torch.tensor([[1], [2], [3]]));
    const model = new nn.Linear(3, 1);
    const optimizer = new optim.LBFGS(model.parameters(), { lineSearchFn: "strong_wolfe" });
    const step = () =>
      optimizer.step(() => {
        optimizer.zeroGrad();
        const loss = nn.functional.mseLoss(model(x), y);
        loss.backward();
        return loss;
      });
    for (let i = 0; i < 5; i++) torch.tidy(step);
    expect(Number(torch.tidy(step).item())).toBeLessThan(1e-6);
  });

  it("leaves gradients that are read inside and outside", () => {
    const model = new nn.Linear(2, 1);
    torch.tidy(() => {
      model(torch.ones([1, 2]))
        .sum()
        .backward();
      expect(model.weight.grad!.tolist()).toEqual([[1, 1]]);
    });
    expect(model.weight.grad!.tolist()).toEqual([[1, 1]]);
    torch.tidy(() => {
      model.weight.grad = torch.full([1, 2], 2.5);
    });
    expect(model.weight.grad!.tolist()).toEqual([[2.5, 2.5]]);
    const loss = torch.tidy(() =>
      model(torch.ones([1, 2]))
        .exp()
        .sum(),
    );
    loss.backward();
    expect(model.weight.grad!.isDisposed).toBe(false);
  });

  it("keeps states that were loaded inside", () => {
    torch.manualSeed(1);
    const net = new Net();
    const optimizer = new optim.Adam(net.parameters());
    const step = () => {
      optimizer.zeroGrad();
      net(batch()).sum().backward();
      optimizer.step();
    };
    step();
    const saved = { net: net.stateDict(), optimizer: optimizer.stateDict() };
    const weight = net.a.weight.tolist();
    torch.tidy(() => {
      const copy: Record<string, torch.Tensor> = {};
      for (const [key, value] of Object.entries(saved.net)) copy[key] = value.add(1);
      net.loadStateDict(copy);
      optimizer.loadStateDict(saved.optimizer);
      net.double().float();
    });
    expect(net.a.weight.sub(1).tolist()).not.toEqual(weight);
    step();
    torch.tidy(step);
    expect(Number(optimizer.state.get(net.a.weight)!["step"] as never)).not.toBe(0);
    const state = optimizer.state.get(net.a.weight) as { exp_avg: torch.Tensor };
    expect(state.exp_avg.isDisposed).toBe(false);
  });

  it("returns modules and optimizers whole", () => {
    const { net, optimizer } = torch.tidy(() => {
      const made = new Net();
      const adam = new optim.Adam(made.parameters());
      made(batch()).sum().backward();
      adam.step();
      return { net: made, optimizer: adam };
    });
    torch.memory.collect();
    expect(net(batch()).shape).toEqual([8, 3]);
    optimizer.step();
  });
});

describe("memory of loops with tidy", () => {
  // Threads matter nothing here, and on a busy machine they make small steps long.
  const threads = torch.getNumThreads();
  beforeAll(() => torch.setNumThreads(1));
  afterAll(() => torch.setNumThreads(threads));

  /** Runs `step` and checks that nothing grows after the first hundred. */
  function constant(steps: number, step: () => void): void {
    for (let i = 0; i < 100; i++) torch.tidy(step);
    const before = torch.memory.stats();
    for (let i = 100; i < steps; i++) torch.tidy(step);
    const after = torch.memory.stats();
    expect(after.tensors).toBe(before.tensors);
    expect(after.allocated).toBe(before.allocated);
    expect(after.minorCollections).toBe(before.minorCollections);
  }

  it("is constant over thousands of training steps", () => {
    torch.manualSeed(0);
    const model = new nn.Sequential(
      new nn.Linear(16, 32),
      new nn.BatchNorm1d(32),
      new nn.ReLU(),
      new nn.Dropout(0.2),
      new nn.Linear(32, 4),
    );
    const optimizer = new optim.Adam(model.parameters(), { lr: 1e-3 });
    const x = torch.randn([32, 16]);
    const target = torch.randint(0, 4, [32]);
    let last = 0;
    constant(4000, () => {
      optimizer.zeroGrad();
      const loss = nn.functional.crossEntropy(model(x), target);
      loss.backward();
      optimizer.step();
      last = Number(loss.item());
    });
    expect(last).toBeLessThan(1.4);
  });

  it("is constant with forgotten views, graphs and retained graphs", () => {
    const w = torch.randn([8, 8], { requiresGrad: true });
    let forgotten: unknown;
    constant(2000, () => {
      const y = w.matmul(w).t().narrow(0, 1, 3).exp();
      w.grad = null;
      y.sum().backward({ retainGraph: true });
      const [g] = torch.autograd.grad(y.sum(), w, { createGraph: true });
      forgotten = [g!.square().sum(), y.unbind(0), w.add(y.sum())];
    });
    expect(forgotten).toBeDefined();
  });

  it("is constant with gradient penalties through two convolutions", () => {
    const model = new nn.Sequential(
      new nn.Conv2d(1, 4, 3, { padding: 1 }),
      new nn.Tanh(),
      new nn.Conv2d(4, 1, 3, { padding: 1 }),
    );
    const x = torch.randn([2, 1, 6, 6], { requiresGrad: true });
    constant(300, () => {
      model.zeroGrad();
      const [g] = torch.autograd.grad(model(x).sum(), x, { createGraph: true });
      g!.square().sum().backward();
    });
  });

  it("is constant where single tensors are disposed", () => {
    const a = torch.ones(100);
    // Each kept tensor is watched until a sweep, which comes at 2,048 of them: stay below one.
    constant(1500, () => {
      const b = a.add(1);
      b.dispose();
      torch.keep(a.add(2)).dispose();
    });
  });
});

describe("memory reports", () => {
  it("lists live tensors with their bytes and sites", () => {
    torch.memory.record();
    const big = torch.zeros([1000, 7]);
    const view = big.narrow(0, 0, 10);
    const records = torch.memory.snapshot();
    const found = records.filter((t) => t.shape[1] === 7);
    expect(found).toHaveLength(2);
    expect(new Set(found.map((t) => t.storage)).size).toBe(1);
    const whole = found.find((t) => t.shape[0] === 1000)!;
    expect(whole).toMatchObject({ dtype: "float32", bytes: 28_000, device: "cpu", depth: 0 });
    expect(whole.storageBytes).toBeGreaterThanOrEqual(28_000);
    expect(whole.site).toMatch(/tidy\.test\.ts/);
    const text = torch.memory.summary();
    expect(text).toMatch(/float32 \[1000, 7\]/);
    expect(text).toMatch(/made at/);
    expect(text).toMatch(/tidy\.test\.ts/);
    expect(torch.memory.summary({ limit: 1 })).toMatch(/in \d+ more/);
    torch.tidy(() => {
      torch.zeros([3]);
      expect(torch.memory.summary()).toMatch(/1 of them belong to a running tidy/);
    });
    torch.memory.record(false);
    expect(torch.memory.summary()).not.toMatch(/made at/);
    torch.dispose(big, view);
  });

  it("counts", () => {
    const { sinceSweep, tensors } = torch.memory.stats();
    expect(sinceSweep).toBeGreaterThanOrEqual(0);
    expect(torch.memory.snapshot()).toHaveLength(tensors);
  });
});
