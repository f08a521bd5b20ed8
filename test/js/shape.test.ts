// Views, joining, padding, creation and casts: values, strides, gradients and what must be refused.
import { describe, expect, it } from "vitest";
import { gradcheck, gradgradcheck } from "../../js/src/gradcheck.js";
import * as torch from "../../js/src/index.js";
import type { Tensor } from "../../js/src/index.js";

const F = torch.nn.functional;
const f64 = { dtype: torch.float64 };
const list = (t: Tensor) => t.tolist();
const t64 = (data: torch.TensorData) => torch.tensor(data, f64);
const leaf = (data: torch.TensorData) => torch.tensor(data, { ...f64, requiresGrad: true });

describe("creation", () => {
  it("takes sizes one by one or as a list, with options last", () => {
    expect(torch.zeros(2, 3).shape).toEqual([2, 3]);
    expect(torch.zeros([2, 3]).shape).toEqual([2, 3]);
    expect(torch.ones(2, 3, { dtype: torch.int32 }).dtype).toBe(torch.int32);
    expect(torch.rand(2, { requiresGrad: true }).requiresGrad).toBe(true);
    expect(torch.empty([]).shape).toEqual([]);
    expect(torch.zeros(2, 2).newZeros(3, { dtype: torch.int64 }).dtype).toBe(torch.int64);
    expect(torch.ones(1024, 3, { device: "meta" }).shape).toEqual([1024, 3]);
    expect(() => torch.zeros(-1)).toThrow(torch.ValueError);
    expect(() => torch.zeros(2 ** 40, 2 ** 40)).toThrow(torch.ValueError);
  });

  it("infers dtypes from plain numbers", () => {
    expect(torch.arange(5).dtype).toBe(torch.int64);
    expect(torch.arange(0, 1, 0.5).dtype).toBe(torch.float32);
    expect(torch.arange(torch.asFloat(3)).dtype).toBe(torch.float32);
    expect(torch.full([2], 1).dtype).toBe(torch.int64);
    expect(torch.full([2], 1.5).dtype).toBe(torch.float32);
    expect(torch.full([2], true).dtype).toBe(torch.bool);
    expect(torch.full([2], new torch.Complex(1, 2)).dtype).toBe(torch.complex64);
    expect(torch.scalarTensor(2).dtype).toBe(torch.float32);
  });

  it("counts ranges as PyTorch does (A16)", () => {
    const length = (...args: [number, number, number]) => torch.arange(...args).shape[0];
    expect(length(0.3, 0.9, 0.1)).toBe(7);
    expect(length(0.4, 0.7, 0.1)).toBe(3);
    expect(length(0.5, 0.8, 0.1)).toBe(4);
    expect(length(0, 1, 1 / 98)).toBe(99);
    expect(length(1, 2.3, 0.1)).toBe(13);
    expect(list(torch.arange(5, -1, -2))).toEqual([5, 3, 1]);
    for (const step of [NaN, 0]) expect(() => torch.arange(0, 3, step)).toThrow(torch.ValueError);
    expect(() => torch.arange(0, Infinity, 1)).toThrow(torch.ValueError);
    expect(() => torch.arange(0, 3, -1)).toThrow(torch.ValueError);
    expect(list(torch.linspace(2, 9, 1))).toEqual([2]);
    expect(list(torch.linspace(0, 1, 0))).toEqual([]);
    expect(torch.linspace(0, 0.7, 8).data().at(-1)).toBe(Math.fround(0.7));
    const ints = torch.linspace(0, 10, 4, { dtype: torch.int64 });
    expect(list(ints)).toEqual([0, 3, 6, 10]);
  });

  it("keeps every bit of int64 (E02)", () => {
    const big = 2n ** 53n;
    const x = torch.tensor([big + 1n, 2n ** 63n - 1n]);
    expect(x.dtype).toBe(torch.int64);
    expect(list(x.add(1))).toEqual([big + 2n, -(2n ** 63n)]);
    expect(list(torch.tensor([1, 2n]))).toEqual([1, 2]);
    expect(torch.tensor([big, 1n]).sum().item()).toBe(9007199254740993n);
    expect(list(torch.tensor([big + 1n]).eq(big))).toEqual([false]);
    expect(list(torch.arange(big, big + 3n))).toEqual(
      [2 ** 53, big + 1n, big + 2n].map((v) =>
        Number.isSafeInteger(Number(v)) ? Number(v) : BigInt(v),
      ),
    );
    expect([...torch.arange(big, big + 3n).data()]).toEqual([big, big + 1n, big + 2n]);
    expect(torch.tensor([big + 1n])[0 as never] ?? torch.tensor([big + 1n]).item()).toBe(big + 1n);
    expect(String(torch.tensor([big + 1n]))).toContain("9007199254740993");
    expect(() => torch.tensor(2n ** 64n)).toThrow(torch.ValueError);
    expect(() => torch.tensor(2 ** 60, { dtype: torch.int64 })).toThrow(torch.ValueError);
  });
});

describe("memory shared with typed arrays (E05)", () => {
  it("copies on the way in and out", () => {
    const whole = new Float32Array([0, 1, 2, 3]);
    const part = torch.tensor(whole.subarray(1, 3));
    whole.fill(9);
    expect(list(part)).toEqual([1, 2]);
    expect(list(torch.tensor(Buffer.from([1, 2, 3])))).toEqual([1, 2, 3]);
    const shared = new Int32Array(new SharedArrayBuffer(8));
    shared.set([5, 6]);
    expect(list(torch.tensor(shared))).toEqual([5, 6]);
    const rows = [Int8Array.of(1, -2), Int8Array.of(3, 4)];
    expect(list(torch.tensor(rows))).toEqual([
      [1, -2],
      [3, 4],
    ]);
    const kept = part.data();
    part.dispose();
    torch.zeros(100).fill_(3);
    expect([...kept]).toEqual([1, 2]);
  });
  it("refuses ragged, sparse and detached data", () => {
    expect(() => torch.tensor([[1, 2], [3]])).toThrow(torch.ShapeError);
    // eslint-disable-next-line no-sparse-arrays
    expect(() => torch.tensor([1, , 3] as never)).toThrow(torch.CressetError);
    const gone = new Float32Array(4);
    structuredClone(gone.buffer, { transfer: [gone.buffer] });
    expect(() => torch.tensor(gone)).toThrow(torch.ValueError);
  });
});

describe("in-place writes and views", () => {
  it("gives a write into overlapping memory one meaning (A29)", () => {
    const wide = t64([2]).expand(3);
    expect(() => wide.mul_(3)).toThrow(torch.ValueError);
    expect(() => wide.copy_(t64([0, 1, 2]))).toThrow(torch.ValueError);
    const a = t64([
      [1, 2],
      [3, 5],
      [7, 8],
    ]);
    expect(list(a.sub_(a.select(0, 0)))).toEqual([
      [0, 0],
      [2, 3],
      [6, 6],
    ]);
    const cube = torch.arange(12, f64).reshape(2, 2, 3);
    const expected = list(cube.sub(cube.select(0, 0)));
    expect(list(cube.sub_(cube.select(0, 0)))).toEqual(expected);
    const b = t64([1, 2, 3, 4]);
    b.slice(0, 1).mul_(b.slice(0, 0, 3));
    expect(list(b)).toEqual([1, 2, 6, 12]);
    const c = t64([
      [1, 2],
      [3, 4],
    ]);
    expect(list(c.add_(c.t()))).toEqual([
      [2, 5],
      [5, 8],
    ]);
    expect(list(b.mul_(b))).toEqual([1, 4, 36, 144]);
    expect(list(torch.zeros(2).asStrided([1, 2], [0, 1]).fill_(7))).toEqual([[7, 7]]);
    expect(list(b.copy_(b.flip(0)))).toEqual([144, 36, 4, 1]);
  });

  it("sends gradients through writes into views (C02)", () => {
    const r = leaf([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    const c = r.clone();
    c.select(0, 0).mul_(3);
    c.select(1, 2).add_(c.select(1, 0));
    expect(list(c.detach())).toEqual([
      [3, 6, 12],
      [4, 5, 10],
    ]);
    c.sum().backward();
    expect(list(r.grad!)).toEqual([
      [6, 3, 3],
      [2, 1, 1],
    ]);
  });

  it("refuses writes whose gradient would be lost (C02)", () => {
    const base = () =>
      leaf([
        [1, 2],
        [3, 4],
      ]).clone();
    const refused = [
      () => base().unbind()[0]!.add_(1),
      () => base().split(1)[0]!.add_(1),
      () => base().unbind()[0]!.narrow(0, 0, 1).add_(1),
      () => {
        const b = base();
        torch.noGrad(() => b.select(0, 0)).add_(1);
      },
      () => leaf([1, 2]).add_(1),
      () => leaf([1, 2]).narrow(0, 0, 1).add_(1),
    ];
    for (const write of refused) expect(write).toThrow(torch.AutogradError);
    const w = leaf([1, 2]);
    torch.noGrad(() => w.add_(1));
    expect(list(w.detach())).toEqual([2, 3]);
  });

  it("changes geometry in place, with gradients", () => {
    const x = leaf([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    const y = x.mul(2);
    expect(y.transpose_(0, 1)).toBe(y);
    expect(y.shape).toEqual([3, 2]);
    y.mul(
      t64([
        [1, 2],
        [3, 4],
        [5, 6],
      ]),
    )
      .sum()
      .backward();
    expect(list(x.grad!)).toEqual([
      [2, 6, 10],
      [4, 8, 12],
    ]);
    expect(() => x.t_()).toThrow(torch.AutogradError);
    expect(torch.zeros(2, 1, 3).squeeze_().shape).toEqual([2, 3]);
    expect(torch.zeros(2).resize_([2, 2]).shape).toEqual([2, 2]);
  });
});

describe("joining and splitting", () => {
  it("casts to the common dtype and skips empty 1-d tensors", () => {
    const y = torch.cat([torch.tensor([1n]), t64([0.5]), torch.zeros(0)]);
    expect(y.dtype).toBe(torch.float64);
    expect(list(y)).toEqual([1, 0.5]);
    expect(() => torch.cat([])).toThrow(torch.ValueError);
    expect(() => torch.cat([torch.zeros(2, 3), torch.zeros(2, 2)])).toThrow(torch.ShapeError);
    expect(() => torch.stack([torch.zeros(2), torch.zeros(3)])).toThrow(torch.ShapeError);
  });
  it("differentiates twice", () => {
    const [a, b] = [
      leaf([[1, 2]]),
      leaf([
        [3, 4],
        [5, 6],
      ]),
    ];
    const apply = (x: Tensor, y: Tensor) =>
      torch.stack(
        torch
          .cat([x, y])
          .mul(torch.cat([x, y]))
          .split(2, 0)[0]!
          .unbind(1),
        0,
      );
    expect(gradcheck(apply, [a, b])).toBe(true);
    expect(gradgradcheck(apply, [a, b])).toBe(true);
  });
  it("keeps channels last", () => {
    const x = torch.rand(2, 3, 4, 5).contiguous({ memoryFormat: torch.channelsLast });
    expect(x.stride()).toEqual([60, 1, 15, 3]);
    expect(x.clone().stride()).toEqual([60, 1, 15, 3]);
    expect(x.isContiguous()).toBe(false);
    expect(x.isContiguous({ memoryFormat: torch.channelsLast })).toBe(true);
    expect(torch.cat([x, x], 1).stride()).toEqual([120, 1, 30, 6]);
    expect(list(x.contiguous())).toEqual(list(x));
  });
});

describe("moving elements", () => {
  it("copies every layout right", () => {
    const x = torch.arange(40 * 37).reshape(40, 37);
    const rows = list(x) as number[][];
    const turned = rows[0]!.map((_, k) => rows.map((row) => row[k]!));
    for (const dtype of [torch.uint8, torch.int16, torch.float32, torch.int64, torch.complex128]) {
      const y = x.remainder(251).to(dtype);
      const back = y.t().contiguous().to(torch.int64);
      expect(list(back)).toEqual(turned.map((row) => row.map((v) => v % 251)));
    }
    expect(list(x.flip([0, 1]))).toEqual(rows.map((row) => row.toReversed()).toReversed());
    expect(
      list(
        torch
          .tensor([
            [1, 2],
            [3, 4],
          ])
          .repeat(2, 2),
      ),
    ).toEqual([
      [1, 2, 1, 2],
      [3, 4, 3, 4],
      [1, 2, 1, 2],
      [3, 4, 3, 4],
    ]);
    expect(list(torch.arange(5).roll(-8))).toEqual([3, 4, 0, 1, 2]);
    expect(list(torch.ones(2, 3).tril())).toEqual([
      [1, 0, 0],
      [1, 1, 0],
    ]);
    expect(list(torch.ones(2, 3).triu(2 ** 50))).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
  });
  it("pads in all modes", () => {
    const x = t64([[[1, 2, 3]]]);
    expect(list(F.pad(x, [2, 1]))).toEqual([[[0, 0, 1, 2, 3, 0]]]);
    expect(list(F.pad(x, [2, 1], "reflect"))).toEqual([[[3, 2, 1, 2, 3, 2]]]);
    expect(list(F.pad(x, [2, 1], "replicate"))).toEqual([[[1, 1, 1, 2, 3, 3]]]);
    expect(list(F.pad(x, [2, 1], "circular"))).toEqual([[[2, 3, 1, 2, 3, 1]]]);
    expect(list(F.pad(x, [-1, 1], "constant", 7))).toEqual([[[2, 3, 7]]]);
    expect(() => F.pad(x, [3, 0], "reflect")).toThrow(torch.ValueError);
    expect(() => F.pad(x, [-2, -2])).toThrow(torch.ValueError);
    for (const mode of ["constant", "reflect", "replicate", "circular"] as const) {
      const pad = (t: Tensor) => F.pad(t, [1, 2], mode).square();
      expect(gradcheck(pad, [leaf([[[1, 2, 3]]])])).toBe(true);
      expect(gradgradcheck(pad, [leaf([[[1, 2, 3]]])])).toBe(true);
    }
  });
  it("refuses out-of-range arguments of any size", () => {
    const x = torch.zeros(3, 4);
    const huge = Number.MAX_SAFE_INTEGER;
    expect(x.diagonal(huge).shape).toEqual([0]);
    expect(x.diagonal(-huge).shape).toEqual([0]);
    expect(() => x.select(0, huge)).toThrow(torch.IndexError);
    expect(() => x.unfold(0, 4, 1)).toThrow(torch.ValueError);
    expect(() => x.asStrided([2], [huge])).toThrow(torch.ValueError);
    expect(() => x.repeat(huge, huge)).toThrow(torch.ValueError);
    expect(() => x.chunk(0)).toThrow(torch.ValueError);
    expect(x.slice(0, -huge, huge).shape).toEqual([3, 4]);
  });
});

describe("complex parts and casts", () => {
  it("shares memory between a complex tensor and its parts", () => {
    const z = torch.complex(t64([1, 2]), t64([3, 4]));
    z.imag.fill_(9);
    expect(list(torch.viewAsReal(z))).toEqual([
      [1, 9],
      [2, 9],
    ]);
    expect(list(torch.real(z))).toEqual([1, 2]);
    const x = leaf([
      [1, 2],
      [3, 4],
    ]);
    torch.viewAsComplex(x).abs().square().sum().backward();
    const grad = [...x.grad!.data()].map((v) => Math.round(Number(v) * 1e9) / 1e9);
    expect(grad).toEqual([2, 4, 6, 8]);
  });
  it("casts by method, by to() and by view()", () => {
    const x = torch.tensor([1.9, -1.9, 0]);
    expect(list(x.long())).toEqual([1, -1, 0]);
    expect(list(x.bool())).toEqual([true, true, false]);
    expect(x.to(torch.float32) === x).toBe(true);
    expect(x.to("cpu", torch.float64).dtype).toBe(torch.float64);
    expect(x.to(torch.float32, false, true) === x).toBe(false);
    expect(x.view(torch.int32).dtype).toBe(torch.int32);
    expect(list(torch.tensor([1]).view(torch.int32))).toEqual([0x3f800000]);
    expect(torch.ones(2).view(torch.uint8).shape).toEqual([8]);
    expect(() => torch.ones(3).view(torch.float64)).toThrow(torch.ShapeError);
  });
});
