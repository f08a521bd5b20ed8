// The engine: leaves, graphs, views and in-place writes, very deep graphs, saved tensors.
import { describe, expect, it } from "vitest";
import * as torch from "cresset";

const { tensor, autograd, AutogradError } = torch;
const leaf = (data: torch.TensorData) => tensor(data, { requiresGrad: true });

describe("backward", () => {
  it("accumulates into leaves", () => {
    const x = leaf([1, 2, 3]);
    x.mul(x).sum().backward();
    x.mul(2).sum().backward();
    expect(x.grad!.tolist()).toEqual([4, 6, 8]);
  });

  it("adds the paths of a tensor that is used twice", () => {
    const x = leaf([2, 3]);
    const y = x.mul(x);
    y.add(y.mul(x)).sum().backward();
    expect(x.grad!.tolist()).toEqual([2 * 2 + 3 * 4, 2 * 3 + 3 * 9]);
  });

  it("refuses a second pass unless told to keep the graph", () => {
    const x = leaf([1, 2]);
    const y = x.mul(x).sum();
    y.backward({ retainGraph: true });
    y.backward();
    expect(x.grad!.tolist()).toEqual([4, 8]);
    expect(() => y.backward()).toThrow(AutogradError);
  });

  it("keeps the gradient of an inner tensor on request", () => {
    const x = leaf([1, 2]);
    const y = x.mul(3);
    y.retainGrad();
    y.mul(y).sum().backward();
    expect(y.grad!.tolist()).toEqual([6, 12]);
    expect(x.grad!.tolist()).toEqual([18, 36]);
  });

  it("reaches only the given inputs", () => {
    const a = leaf([1]);
    const b = leaf([2]);
    a.mul(b)
      .sum()
      .backward({ inputs: [a] });
    expect(a.grad!.tolist()).toEqual([2]);
    expect(b.grad).toBeNull();
  });

  it("names its nodes as PyTorch does", () => {
    const x = leaf([1]);
    const y = x.mul(2).exp();
    expect(y.gradFn!.name).toBe("ExpBackward0");
    const [next] = y.gradFn!.nextFunctions;
    expect(next![0]!.name).toBe("MulBackward0");
    expect(next![0]!.nextFunctions[0]![0]!.name).toBe("AccumulateGrad");
    expect(next![0]!.nextFunctions[1]![0]).toBeNull();
  });
});

describe("grad", () => {
  it("gives higher derivatives", () => {
    const x = leaf(2);
    const y = x.pow(4);
    const [first] = autograd.grad(y, x, { createGraph: true });
    const [second] = autograd.grad(first!, x, { createGraph: true });
    const [third] = autograd.grad(second!, x);
    expect([first, second, third].map((t) => t!.item())).toEqual([32, 48, 48]);
  });

  it("leaves .grad alone and reports unused inputs", () => {
    const x = leaf([1, 2]);
    const other = leaf([1]);
    const y = x.sum();
    expect(() => autograd.grad(y, [x, other], { retainGraph: true })).toThrow(/not used/);
    const [g, none] = autograd.grad(y, [x, other], { allowUnused: true });
    expect(g!.tolist()).toEqual([1, 1]);
    expect(none).toBeNull();
    expect(x.grad).toBeNull();
  });

  it("takes the gradient by an inner tensor", () => {
    const x = leaf([1, 2]);
    const y = x.mul(2);
    const [g] = autograd.grad(y.mul(y).sum(), y);
    expect(g!.tolist()).toEqual([4, 8]);
  });
});

describe("modes", () => {
  it("records nothing under noGrad, whatever happens inside", () => {
    const x = leaf([1]);
    expect(torch.noGrad(() => x.mul(2)).requiresGrad).toBe(false);
    expect(() =>
      torch.noGrad(() => {
        throw new Error("stop");
      }),
    ).toThrow("stop");
    expect(torch.isGradEnabled()).toBe(true);
    expect(torch.noGrad(() => torch.enableGrad(() => x.mul(2))).requiresGrad).toBe(true);
  });

  it("works as a disposable", () => {
    const guard = torch.noGrad();
    expect(torch.isGradEnabled()).toBe(false);
    guard[Symbol.dispose]();
    expect(torch.isGradEnabled()).toBe(true);
  });
});

describe("very deep graphs", () => {
  it("frees 200,000 nodes without a backward pass", () => {
    let y = leaf([1]);
    for (let i = 0; i < 200_000; i++) y = y.add(y, { alpha: 2 ** -20 });
    y.dispose();
    torch.memory.collect();
  });

  it("runs backward through 100,000 nodes", () => {
    const x = tensor([1], { dtype: torch.float64, requiresGrad: true });
    let y: torch.Tensor = x;
    for (let i = 0; i < 100_000; i++) y = y.add(y.mul(2 ** -20));
    y.sum().backward();
    expect(x.grad!.item()).toBeCloseTo(1.1000629287977, 12);
  });
});

describe("writes through views", () => {
  it("follows a write to a part of a tensor", () => {
    const r = leaf([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    const c = r.clone();
    c.select(0, 0).mul_(3);
    c.select(1, 2).add_(c.select(1, 0));
    expect(c.tolist()).toEqual([
      [3, 6, 12],
      [4, 5, 10],
    ]);
    c.sum().backward();
    expect(r.grad!.tolist()).toEqual([
      [6, 3, 3],
      [2, 1, 1],
    ]);
  });

  it("shows a write to the base in the history of its views", () => {
    const w = leaf([2]);
    const base = torch.zeros(3);
    const view = base.narrow(0, 1, 2);
    base.add_(w);
    expect(view.requiresGrad).toBe(true);
    view.sum().backward();
    expect(w.grad!.tolist()).toEqual([2]);
  });

  it("refuses writes that would give wrong gradients", () => {
    const r = leaf([
      [1, 2],
      [3, 4],
    ]);
    const c = r.clone();
    const noGradView = torch.noGrad(() => c.narrow(0, 0, 1));
    const refused: [string, () => unknown][] = [
      ["unbind output", () => c.unbind(0)[0]!.mul_(2)],
      ["split output", () => c.split(1)[0]!.mul_(2)],
      ["part of one", () => c.split(1)[0]!.narrow(1, 0, 1).mul_(2)],
      ["view made under noGrad", () => noGradView.mul_(2)],
      ["leaf", () => r.mul_(2)],
      ["view of a leaf", () => r.select(0, 0).mul_(2)],
    ];
    for (const [name, write] of refused) expect(write, name).toThrow(AutogradError);
    torch.noGrad(() => r.add_(1));
    expect(r.tolist()).toEqual([
      [2, 3],
      [4, 5],
    ]);
  });
});

describe("saved tensors that change", () => {
  it("are an error that names the operator and the versions", () => {
    const a = leaf([0.5]);
    const plain = tensor([2]);
    const changed: [string, () => void][] = [
      [
        "SigmoidBackward0",
        () => {
          const o = a.sigmoid();
          o.detach().zero_();
          o.sum().backward();
        },
      ],
      [
        "MulBackward0",
        () => {
          const o = a.mul(plain);
          plain.add_(5);
          o.sum().backward();
        },
      ],
      [
        "MmBackward0",
        () => {
          const x = tensor([[1, 2]]);
          const w = leaf([[1], [2]]);
          const o = x.matmul(w);
          x.mul_(2);
          o.sum().backward();
        },
      ],
      [
        "ExpBackward0",
        () => {
          const y = a.exp();
          y.add_(1);
          y.sum().backward();
        },
      ],
    ];
    for (const [node, run] of changed) {
      expect(run).toThrow(AutogradError);
      expect(run).toThrow(new RegExp(`${node}.*version \\d+; expected version \\d+`));
    }
  });

  it("are no error where the derivative does not need them", () => {
    const w = leaf([1, 2]);
    const x = tensor([3, 4]);
    const o = x.add(w);
    x.mul_(2);
    o.sum().backward();
    expect(w.grad!.tolist()).toEqual([1, 1]);
    const v = leaf([1, -1]);
    v.mul(2).relu_().sum().backward();
    expect(v.grad!.tolist()).toEqual([2, 0]);
  });
});

it("a second derivative goes through a result written into a view", () => {
  const derivatives = (write: (x: torch.Tensor, y: torch.Tensor) => torch.Tensor) => {
    const base = torch.tensor([6, 8, 10], { dtype: torch.float64 });
    const y = torch.tensor(2, { dtype: torch.float64, requiresGrad: true });
    const x = write(base.narrow(0, 1, 2), y);
    const [g] = torch.autograd.grad([torch.sum(x)], [y], { createGraph: true });
    torch.sum(g!).backward();
    return [g!.item(), y.grad!.item()];
  };
  expect(derivatives((x, y) => x.div_(y))).toEqual([-4.5, 4.5]);
  expect(derivatives((x, y) => x.div(y))).toEqual([-4.5, 4.5]);
});
