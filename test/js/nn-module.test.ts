// nn.Module: calls, registration, state, hooks, conversion and printing.
import { describe, expect, test } from "vitest";
import * as torch from "../../js/src/index.js";
import { nn, Tensor } from "../../js/src/index.js";

class Net extends nn.Module<[Tensor], Tensor> {
  #calls = 0;
  scale = new nn.Parameter(torch.ones([2]));
  layers = new nn.ModuleList([new Twice(), new Twice()]);
  bn = new nn.BatchNorm1d(2);
  constructor(readonly shift: number) {
    super();
  }
  get calls(): number {
    return this.#calls;
  }
  forward(x: Tensor): Tensor {
    this.#calls++;
    for (const layer of this.layers) x = layer(x);
    return x.mul(this.scale).add(this.shift);
  }
}
class Twice extends nn.Module<[Tensor], Tensor> {
  forward(x: Tensor): Tensor {
    return x.mul(2);
  }
}

describe("calls", () => {
  test("run forward, with private members and constructor arguments", () => {
    const net = new Net(1);
    expect(net(torch.tensor([1, 2])).tolist()).toEqual([5, 9]);
    expect(net.calls).toBe(1);
    expect(net).toBeInstanceOf(Net);
    expect(net).toBeInstanceOf(nn.Module);
  });

  test("run hooks in order, until they are removed", () => {
    const net = new Twice();
    const before = net.registerForwardPreHook((_, [x]) => [(x as Tensor).add(1)]);
    const after = net.registerForwardHook((module, args, out) => {
      expect(module).toBe(net);
      expect((args[0] as Tensor).item()).toBe(2);
      return (out as Tensor).neg();
    });
    expect(net(torch.tensor(1)).item()).toBe(-4);
    before.remove();
    after.remove();
    expect(net(torch.tensor(1)).item()).toBe(2);
  });

  test("cost less than 100 ns over forward", () => {
    class Pass extends nn.Module<[number], number> {
      forward(x: number): number {
        return x + 1;
      }
    }
    const modules = [new Pass(), new Pass()];
    const time = (f: (m: Pass) => void) => {
      for (let i = 0; i < 1e5; i++) f(modules[i & 1]!);
      const start = performance.now();
      for (let i = 0; i < 1e6; i++) f(modules[i & 1]!);
      return performance.now() - start; // ms per million calls: ns per call
    };
    const direct = Math.min(...[1, 2, 3].map(() => time((m) => m.forward(1))));
    const called = Math.min(...[1, 2, 3].map(() => time((m) => m(1))));
    expect(called - direct).toBeLessThan(100);
  });
});

describe("registration", () => {
  test("is by assignment, in PyTorch's order and spelling", () => {
    const net = new Net(0);
    expect(net.namedParameters().map(([name]) => name)).toEqual(["scale", "bn.weight", "bn.bias"]);
    expect(Object.keys(net.stateDict())).toEqual([
      "scale",
      "bn.weight",
      "bn.bias",
      "bn.running_mean",
      "bn.running_var",
      "bn.num_batches_tracked",
    ]);
    expect(net.namedModules().map(([name]) => name)).toEqual([
      "",
      "layers",
      "layers.0",
      "layers.1",
      "bn",
    ]);
    expect(net.namedChildren().map(([name]) => name)).toEqual(["layers", "bn"]);
  });

  test("sees fields that come later, and shared parameters once", () => {
    const net = new Twice() as Twice & Record<string, unknown>;
    const weight = new nn.Parameter(torch.ones([1]));
    net["a"] = weight;
    net["b"] = weight;
    expect(net.parameters().length).toBe(1);
    expect(net.parameters()[0]).toBe(weight);
    expect(Object.keys(net.stateDict())).toEqual(["a", "b"]);
  });

  test("registerBuffer keeps what is not persistent out of the state", () => {
    const net = new Twice();
    net.registerBuffer("mask", torch.ones([2]));
    net.registerBuffer("cache", torch.ones([2]), false);
    expect(Object.keys(net.stateDict())).toEqual(["mask"]);
    expect(net.namedBuffers().map(([name]) => name)).toEqual(["mask", "cache"]);
    expect(() => net.registerBuffer("a.b", torch.ones([1]))).toThrow(torch.ValueError);
    expect(() => net.registerBuffer("forward", torch.ones([1]))).toThrow(torch.ValueError);
  });

  test("containers have the names of PyTorch", () => {
    const net = new nn.Sequential(new Twice(), new nn.Sequential({ first: new Twice() }));
    net.append(new nn.BatchNorm1d(1));
    expect(net.length).toBe(3);
    expect(net.namedModules().map(([name]) => name)).toEqual(["", "0", "1", "1.first", "2"]);
    expect(net.get(-1)).toBeInstanceOf(nn.BatchNorm1d);
    expect(() => net.get(3)).toThrow(torch.IndexError);
    const list = new nn.ParameterList([torch.ones([1]), torch.zeros([2])]);
    expect(list.namedParameters().map(([name]) => name)).toEqual(["0", "1"]);
    const dict = new nn.ModuleDict({ x: new Twice() });
    expect(dict.namedChildren().map(([name]) => name)).toEqual(["x"]);
  });
});

describe("state", () => {
  test("loads in place, and complains about everything at once", () => {
    const net = new Net(0);
    const { scale } = net;
    const state = net.stateDict();
    net.loadStateDict({ ...state, scale: torch.tensor([3, 4]) });
    expect(net.scale).toBe(scale);
    expect(scale.tolist()).toEqual([3, 4]);
    const { scale: _, ...rest } = state;
    const bad = { ...rest, extra: torch.ones([1]), "bn.bias": torch.ones([3]) };
    expect(() => net.loadStateDict(bad)).toThrow(torch.ShapeError);
    expect(() => net.loadStateDict(bad)).toThrow(/Unexpected key.*"extra"/);
    expect(() => net.loadStateDict(bad)).toThrow(/Missing key.*"scale"/);
    expect(() => net.loadStateDict(bad)).toThrow(/bn\.bias.*\[3\].*\[2\]/);
    expect(net.loadStateDict({ extra: torch.ones([1]) }, { strict: false })).toEqual({
      missingKeys: Object.keys(state),
      unexpectedKeys: ["extra"],
    });
  });

  test("train, eval, requiresGrad_ and zeroGrad reach all modules", () => {
    const net = new Net(0);
    net.eval();
    expect(net.modules().map((m) => m.training)).toEqual([false, false, false, false, false]);
    net.train();
    expect(net.bn.training).toBe(true);
    net(torch.tensor([1, 2]))
      .sum()
      .backward();
    expect(net.scale.grad!.tolist()).toEqual([4, 8]);
    net.zeroGrad(false);
    expect(net.scale.grad!.tolist()).toEqual([0, 0]);
    net.zeroGrad();
    expect(net.scale.grad).toBeNull();
    net.requiresGrad_(false);
    expect(net.scale.requiresGrad).toBe(false);
  });

  test("conversion keeps the parameters' identity", () => {
    const net = new Net(0);
    const { scale } = net;
    net(torch.tensor([1, 2]))
      .sum()
      .backward();
    net.double();
    expect(net.scale).toBe(scale);
    expect([scale.dtype, scale.grad!.dtype]).toEqual([torch.float64, torch.float64]);
    expect(net.bn.numBatchesTracked!.dtype).toBe(torch.int64);
    net.zeroGrad();
    net(torch.tensor([1, 2], { dtype: torch.float64 }))
      .sum()
      .backward();
    expect(scale.grad!.dtype).toBe(torch.float64);
    expect(scale.requiresGrad).toBe(true);
  });
});

describe("printing", () => {
  test("is PyTorch's", () => {
    expect(String(new Net(1))).toBe(
      [
        "Net(",
        "  (layers): ModuleList(",
        "    (0-1): 2 x Twice()",
        "  )",
        "  (bn): BatchNorm1d(2, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)",
        ")",
      ].join("\n"),
    );
    expect(String(new nn.MaxPool2d(2))).toBe(
      "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
    );
    expect(String(new nn.Softplus())).toBe("Softplus(beta=1.0, threshold=20.0)");
    expect(String(new nn.Parameter(torch.ones([2])))).toBe(
      "Parameter containing:\ntensor([1., 1.], requires_grad=True)",
    );
  });
});

test("wrong arguments of constructors are typed errors", () => {
  expect(() => new nn.MaxPool2d(2, { strid: 2 } as object)).toThrow(/unexpected argument "strid"/);
  expect(() => new nn.MaxPool2d(2, 2, { stride: 2 })).toThrow(/given twice/);
  expect(() => new (nn.LayerNorm as unknown as new () => object)()).toThrow(/missing argument/);
});
