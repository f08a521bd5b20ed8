// Optimizers and schedules: PyTorch's numbers, missing gradients, states, cost of a step.
import { describe, expect, test } from "vitest";
import * as torch from "../../js/src/index.js";
import { optim, Tensor } from "../../js/src/index.js";

const { lrScheduler } = optim;

function parameter(value: number, grad: number | null): Tensor {
  const p = torch.tensor([value], { dtype: torch.float64, requiresGrad: true });
  setGrad(p, grad);
  return p;
}
function setGrad(p: Tensor, grad: number | null): void {
  p.grad = grad === null ? null : torch.tensor([grad], { dtype: torch.float64 });
}
const value = (p: Tensor) => Number(p.item());

describe("missing gradients", () => {
  const makers = {
    SGD: (ps: Tensor[]) => new optim.SGD(ps, { lr: 0.1, momentum: 0.9, weightDecay: 0.2 }),
    Adam: (ps: Tensor[]) => new optim.Adam(ps, { lr: 0.1, weightDecay: 0.2 }),
    AdamW: (ps: Tensor[]) => new optim.AdamW(ps, { lr: 0.1, weightDecay: 0.2 }),
  };
  test.each([
    ["SGD", 2.94],
    ["Adam", 2.9],
    ["AdamW", 2.94],
  ] as const)("%s leaves such a parameter alone, without state", (name, expected) => {
    const params = [parameter(3, 0), parameter(3, null)];
    const optimizer = makers[name](params);
    optimizer.step();
    expect(value(params[0]!)).toBeCloseTo(expected, 6);
    expect(value(params[1]!)).toBe(3);
    expect(optimizer.state.has(params[1]!)).toBe(false);
    expect(params[0]!.grad!.tolist()).toEqual([0]);
  });

  test("Adam counts only the steps with a gradient, and leaves gradients as they are", () => {
    const p = parameter(1, null);
    const optimizer = new optim.Adam([p], { lr: 0.1 });
    const seen = [2, 0, null, 0].map((grad) => {
      setGrad(p, grad);
      optimizer.step();
      if (grad !== null) expect(p.grad!.tolist()).toEqual([grad]);
      return value(p);
    });
    const expected = [0.9, 0.8329942, 0.8329942, 0.7811985];
    seen.forEach((x, i) => expect(x).toBeCloseTo(expected[i]!, 6));
    expect((optimizer.state.get(p)!["step"] as Tensor).item()).toBe(3);
  });
});

describe("states", () => {
  test("a resumed run of a bfloat16 parameter is equal, its count exact", () => {
    const make = (from: number[]) => {
      const p = torch.tensor(from, { dtype: torch.bfloat16, requiresGrad: true });
      return { p, optimizer: new optim.Adam([p], { lr: 0.01 }) };
    };
    const a = make([1, -2]);
    const grad = torch.tensor([0.5, -0.25], { dtype: torch.bfloat16 });
    for (let i = 0; i < 300; i++) {
      a.p.grad = grad;
      a.optimizer.step();
    }
    const saved = a.optimizer.stateDict();
    const count = (o: optim.Adam) => (o.stateDict().state[0]!["step"] as Tensor).item();
    expect(count(a.optimizer)).toBe(300);
    const b = make(a.p.tolist() as number[]);
    b.optimizer.loadStateDict(saved);
    for (const { p, optimizer } of [a, b]) {
      p.grad = grad;
      optimizer.step();
      expect(count(optimizer)).toBe(301);
    }
    expect(b.p.tolist()).toEqual(a.p.tolist());
  });

  test("are copied, and refused whole when they do not fit", () => {
    const two = [parameter(1, 1), parameter(2, 1)];
    const first = new optim.SGD(two, { lr: 0.1, momentum: 0.9 });
    first.step();
    const saved = first.stateDict();
    expect(saved.param_groups[0]).toMatchObject({ lr: 0.1, weight_decay: 0, params: [0, 1] });
    const other = new optim.SGD([parameter(1, 1), parameter(2, 1)], { lr: 0.5, momentum: 0.5 });
    other.loadStateDict(saved);
    (saved.state[0]!["momentum_buffer"] as Tensor).fill_(100);
    const buffer = other.state.get(other.paramGroups[0]!.params[0]!)!["momentum_buffer"] as Tensor;
    expect(buffer.tolist()).toEqual([1]);
    expect(other.paramGroups[0]!.lr).toBe(0.1);

    const one = new optim.SGD([parameter(1, 1)], { lr: 0.5 });
    expect(() => one.loadStateDict(saved)).toThrow(torch.ValueError);
    expect(one.paramGroups[0]!.lr).toBe(0.5);
    const groups = new optim.SGD([{ params: [parameter(1, 1)] }, { params: [parameter(1, 1)] }]);
    expect(() => groups.loadStateDict(saved)).toThrow(torch.ValueError);
    const p = parameter(1, 1);
    expect(() => new optim.SGD([{ params: [p] }, { params: [p] }])).toThrow(torch.ValueError);
    expect(() => new optim.SGD([p], { lrr: 1 } as object)).toThrow(/unexpected argument "lrr"/);
    expect(() => new optim.SGD([p], { lr: -1 })).toThrow(torch.ValueError);
    expect(() => new optim.SGD([])).toThrow(torch.ValueError);
  });

  test("groups have options of their own", () => {
    const [a, b] = [parameter(1, 1), parameter(1, 1)];
    new optim.SGD([{ params: [a] }, { params: [b], lr: 1 }], { lr: 0.1 }).step();
    expect([value(a), value(b)]).toEqual([0.9, 0]);
  });
});

test("half types, layouts other than contiguous and float32 agree with float64", () => {
  for (const dtype of [torch.float16, torch.bfloat16, torch.float32]) {
    const base = torch.tensor(
      [
        [1, 2, 3],
        [4, 5, 6],
      ],
      { dtype },
    );
    const p = base.transpose(0, 1).detach().requiresGrad_(true);
    p.grad = torch.ones([3, 2], { dtype });
    new optim.Adam([p], { lr: 0.5 }).step();
    const found = (p.tolist() as number[][]).flat();
    [0.5, 3.5, 1.5, 4.5, 2.5, 5.5].forEach((x, i) => expect(found[i]).toBeCloseTo(x, 6));
  }
});

describe("schedules", () => {
  const sgd = (lr: number) => new optim.SGD([parameter(1, 1)], { lr, momentum: 0.9 });

  test("a plateau with negative metrics, and patience", () => {
    const run = (options: object, metrics: number[]) => {
      const optimizer = sgd(0.4);
      const schedule = new lrScheduler.ReduceLROnPlateau(optimizer, { factor: 0.5, ...options });
      return metrics.map((metric) => {
        schedule.step(metric);
        return optimizer.paramGroups[0]!.lr;
      });
    };
    const rel = run({ threshold: 0.1, patience: 0 }, [-2, -1.9, -1.85, -1.6, -1.6]);
    expect(rel).toEqual([0.4, 0.4, 0.4, 0.2, 0.1]);
    const abs = { threshold: 0.1, thresholdMode: "abs", patience: 0 };
    expect(run(abs, [-2, -1.9, -2.05, -2.2])).toEqual([0.4, 0.2, 0.1, 0.1]);
    const patient = run({ patience: 2, cooldown: 1 }, Array<number>(8).fill(1));
    expect(patient).toEqual([0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.2, 0.1]);
  });

  test("one cycle ends low, and says how often it was stepped", () => {
    const optimizer = sgd(0.1);
    const schedule = new lrScheduler.OneCycleLR(optimizer, { maxLr: 0.2, totalSteps: 6 });
    const expected = [
      0.008, 0.198883087, 0.162349131, 0.0925274205, 0.026695506, 8e-7, 0.026695506,
    ];
    expected.forEach((lr, i) => {
      if (i > 0) schedule.step();
      expect(optimizer.paramGroups[0]!.lr).toBeCloseTo(lr, 9);
    });
    expect(() => schedule.step()).toThrow(/7 times.* 6/);
  });

  test("one after the other, and resumed", () => {
    const optimizer = sgd(1);
    const schedule = new lrScheduler.SequentialLR(
      optimizer,
      [
        new lrScheduler.ConstantLR(optimizer, 0.5, 2),
        new lrScheduler.ExponentialLR(optimizer, 0.9),
      ],
      [2],
    );
    const seen = [optimizer.paramGroups[0]!.lr];
    for (let i = 0; i < 4; i++) {
      schedule.step();
      seen.push(optimizer.paramGroups[0]!.lr);
    }
    [0.5, 0.5, 1, 0.9, 0.81].forEach((lr, i) => expect(seen[i]).toBeCloseTo(lr, 12));

    const other = sgd(0.1);
    const step = new lrScheduler.StepLR(other, 2);
    step.step();
    const saved = step.stateDict();
    expect(saved).toMatchObject({ last_epoch: 1, step_size: 2, gamma: 0.1, base_lrs: [0.1] });
    const fresh = new lrScheduler.StepLR(sgd(0.1), 5);
    fresh.loadStateDict(saved);
    fresh.step();
    expect(fresh.getLastLr()[0]).toBeCloseTo(0.01, 12);
  });
});

test("a step over the four parameters of a small network is a few microseconds", () => {
  const shapes = [[64, 2], [64], [1, 64], [1]];
  const params = shapes.map((shape) => torch.ones(shape).requiresGrad_(true));
  for (const p of params) p.grad = torch.ones(p.shape);
  const optimizer = new optim.SGD(params, { lr: 1e-6 });
  let best = Infinity;
  for (let run = 0; run < 5; run++) {
    const start = performance.now();
    for (let i = 0; i < 2000; i++) optimizer.step();
    best = Math.min(best, (performance.now() - start) / 2);
  }
  // Microseconds; 1 to 2 on an idle machine.
  expect(best).toBeLessThan(20);
});

describe("saved states", () => {
  type Make = new (params: Tensor[], options: object) => optim.Optimizer;
  const kinds = Object.entries(optim).filter(([key]) => /^[A-Z]/.test(key) && key !== "Optimizer");
  const start = (Class: Make): [optim.Optimizer, Tensor[]] => {
    const params = [
      torch.arange(6, { dtype: torch.float32 }).reshape([3, 2]).add(1).requiresGrad_(true),
      torch.ones([2, 2]).requiresGrad_(true),
    ];
    return [new Class(params, { lr: 0.01 }), params];
  };
  const step = ([optimizer, params]: [optim.Optimizer, Tensor[]]) =>
    optimizer.step(() => {
      const loss = params.map((p) => p.pow(4).sum()).reduce((a, b) => a.add(b));
      optimizer.zeroGrad();
      loss.backward();
      return loss;
    });

  test.each(kinds)("%s goes on from its state as it would have", (_, Class) => {
    const first = start(Class as unknown as Make);
    const second = start(Class as unknown as Make);
    step(first);
    step(first);
    torch.noGrad(() => first[1].forEach((p, i) => second[1][i]!.copy_(p)));
    second[0].loadStateDict(first[0].stateDict());
    step(first);
    step(second);
    first[1].forEach((p, i) => expect(second[1][i]!.tolist()).toEqual(p.tolist()));
  });

  test("what PyTorch leaves out of a state may be missing", () => {
    const muon = start(optim.Muon as unknown as Make);
    const { param_groups } = muon[0].stateDict();
    const buffers = muon[1].map((p) => ({ momentum_buffer: torch.zerosLike(p) }));
    muon[0].loadStateDict({ state: { ...buffers }, param_groups });
    step(muon);
    const lbfgs = start(optim.LBFGS as unknown as Make);
    const groups = lbfgs[0].stateDict().param_groups;
    lbfgs[0].loadStateDict({ state: { 0: { func_evals: 1, n_iter: 0 } }, param_groups: groups });
    step(lbfgs);
    for (const p of [...muon[1], ...lbfgs[1]]) expect(Number.isFinite(value(p.sum()))).toBe(true);
  });

  test("nonsense is refused with typed errors, and changes nothing", () => {
    const [optimizer] = start(optim.RMSprop as unknown as Make);
    const state = optimizer.stateDict();
    const groups = state.param_groups;
    const bad: [unknown, RegExp][] = [
      [null, /^RMSprop: expected a state with "state" and "param_groups"/],
      [{ state: {}, param_groups: [null] }, /^RMSprop: expected a state with/],
      [{ ...state, state: { 0: { step: 1 } } }, /^RMSprop: expected a Tensor as saved square_avg/],
      [
        { ...state, param_groups: [{ ...groups[0], lr: "x" }] },
        /^RMSprop: expected a number for "lr"/,
      ],
    ];
    for (const [saved, message] of bad) {
      expect(() => optimizer.loadStateDict(saved as optim.OptimizerState)).toThrow(message);
    }
    expect(optimizer.stateDict()).toEqual(state);
  });

  test("options, closures and schedules of the wrong kind are refused", () => {
    const p = parameter(1, 1);
    const wrong = [0.9] as unknown as [number, number];
    expect(() => new optim.Adam([p], { betas: wrong })).toThrow(/^Adam: expected 2 numbers/);
    expect(() => new optim.Muon([p], { nsSteps: 2 ** 31 })).toThrow(/nsSteps below 100/);
    const sgd = new optim.SGD([p], { lr: 0.1 });
    expect(() => sgd.step(3 as never)).toThrow(/^SGD: expected a function as closure, got 3/);
    expect(() => new lrScheduler.StepLR(sgd, "x" as never)).toThrow(/^StepLR: expected a number/);
    const restarts = new lrScheduler.CosineAnnealingWarmRestarts(sgd, 1);
    restarts.step(2 ** 53 - 1);
    expect(() => restarts.step(Infinity)).toThrow(/expected an epoch/);
  });
});
