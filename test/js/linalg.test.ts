// Matrix products and small dense linear algebra.
import { describe, expect, test } from "vitest";
import * as torch from "cresset";
import type { Tensor } from "cresset";
import { gradcheck, gradgradcheck } from "../../js/src/gradcheck.js";

const { linalg } = torch;
const f64 = { dtype: torch.float64 };
const random = (...shape: number[]) =>
  torch.randn(shape, { dtype: torch.float64, requiresGrad: true });
const close = (a: Tensor, b: Tensor) => expect(a.sub(b).abs().max().item()).toBeLessThan(1e-10);

describe("products", () => {
  test("empty inner dims give zeros, or the bias", () => {
    expect(torch.mm(torch.ones([2, 0]), torch.ones([0, 3])).tolist()).toEqual([
      [0, 0, 0],
      [0, 0, 0],
    ]);
    const bias = torch.tensor([1, 2]);
    const y = torch.nn.functional.linear(torch.ones([1, 0]), torch.ones([2, 0]), bias.float());
    expect(y.tolist()).toEqual([[1, 2]]);
  });

  test("beta 0 does not read self", () => {
    const nan = torch.full([2, 2], NaN);
    const one = torch.ones([2, 2]);
    expect(torch.addmm(nan, one, one, { beta: 0 }).tolist()).toEqual([
      [2, 2],
      [2, 2],
    ]);
    expect(nan.addmm_(one, one, { beta: 0 }).tolist()).toEqual([
      [2, 2],
      [2, 2],
    ]);
    expect(one.addmm_(one, one).tolist()).toEqual([
      [3, 3],
      [3, 3],
    ]);
  });

  // Steps along the inner dimension are taken four at a time, rows and columns in tiles.
  test.each([torch.float32, torch.float64])("products of all sorts of shapes: %s", (dtype) => {
    const integers = (rows: number, cols: number, factor: number) =>
      Array.from({ length: rows }, (_, i) =>
        Array.from({ length: cols }, (_, j) => ((i * factor + j * 5) % 7) - 3),
      );
    for (const inner of [1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 514]) {
      for (const [rows, cols] of [
        [1, 1],
        [2, 9],
        [5, 8],
        [6, 3],
        [19, 70],
        [26, 33],
        [103, 41],
      ]) {
        const [x, y] = [integers(rows!, inner, 3), integers(inner, cols!, 4)];
        const want = x.map((row) =>
          y[0]!.map((_, j) => row.reduce((sum, value, p) => sum + value * y[p]![j]!, 0)),
        );
        const [a, b] = [torch.tensor(x, { dtype }), torch.tensor(y, { dtype })];
        expect(a.matmul(b).tolist()).toEqual(want);
        expect(a.t().contiguous().t().matmul(b.t().contiguous().t()).tolist()).toEqual(want);
      }
    }
  });

  test("einsum: diagonals, ellipsis, implicit output, broadcasting", () => {
    torch.manualSeed(0);
    const a = torch.randn([2, 3, 4], f64);
    const b = torch.randn([2, 4, 5], f64);
    close(torch.einsum("bij,bjk->bik", a, b), torch.bmm(a, b));
    close(torch.einsum("...ij,...jk", [a, b]), torch.bmm(a, b));
    const square = torch.randn([3, 3], f64);
    close(torch.einsum("ii", square), square.diagonal().sum());
    close(torch.einsum("ij->ji", square), square.t());
    close(torch.einsum("ba", square), square.t());
    expect(() => torch.einsum("ij->iji", square)).toThrow(torch.ValueError);
    expect(() => torch.einsum("ij->k", square)).toThrow(torch.ValueError);
    const f = (x: Tensor, y: Tensor) => torch.einsum("aij,jk,k->ai", x, y, y.sum(0));
    expect(gradcheck(f, [random(2, 3, 4), random(4, 2)])).toBe(true);
  });

  test("chains and powers", () => {
    const a = random(3, 3);
    close(linalg.matrixPower(a, -2), linalg.inv(a.matmul(a)));
    close(linalg.multiDot([a, a, a]), linalg.matrixPower(a, 3));
    expect(linalg.matrixPower(a, 0).tolist()).toEqual([
      [1, 0, 0],
      [0, 1, 0],
      [0, 0, 1],
    ]);
  });
});

describe("factorizations", () => {
  test("give the matrix back", () => {
    torch.manualSeed(1);
    for (const [m, n] of [
      [4, 4],
      [5, 3],
      [3, 5],
    ] as const) {
      const a = torch.randn([2, m, n], f64);
      const { P, L, U } = linalg.lu(a);
      close(P.matmul(L).matmul(U), a);
      const { Q, R } = linalg.qr(a);
      close(Q.matmul(R), a);
    }
    const a = torch.randn([3, 3], f64);
    const spd = a.matmul(a.t()).add(torch.eye(3, f64));
    const l = linalg.cholesky(spd);
    close(l.matmul(l.t()), spd);
    close(torch.choleskySolve(spd, l), torch.eye(3, f64));
  });

  test("derivatives agree with differences, twice", () => {
    torch.manualSeed(2);
    const check = (f: (...x: Tensor[]) => Tensor | Tensor[], ...inputs: Tensor[]) => {
      expect(gradcheck(f as never, inputs)).toBe(true);
      expect(gradgradcheck(f as never, inputs)).toBe(true);
    };
    check((a, b) => linalg.solve(a!, b!), random(3, 3), random(3, 2));
    check((a) => linalg.det(a!), random(3, 3));
    const positive = (a: Tensor) => a.matmul(a.t()).add(torch.eye(3, f64));
    check((a) => linalg.cholesky(positive(a!)), random(3, 3));
    check((a, b) => torch.choleskySolve(b!, a!.tril()), random(3, 3), random(3, 2));
    check((a) => linalg.qr(a!).R, random(4, 3));
    check((a) => linalg.luFactor(a!).LU, random(3, 4));
  });

  test("a singular matrix is an error, or told by info; its determinant has cofactors", () => {
    const a = torch.tensor(
      [
        [1, 2],
        [2, 4],
      ],
      { ...f64, requiresGrad: true },
    );
    expect(() => linalg.inv(a)).toThrow(/linalg.inv: matrix 0 of the batch is singular/);
    expect(linalg.invEx(a.detach()).info.item()).toBe(2);
    linalg.det(a).backward();
    close(
      a.grad!,
      torch.tensor(
        [
          [4, -2],
          [-2, 1],
        ],
        f64,
      ),
    );
    const bad = torch.tensor(
      [
        [1, 2],
        [2, 1],
      ],
      f64,
    );
    expect(() => linalg.cholesky(bad)).toThrow(/not positive definite/);
  });
});

test("low-rank factors refuse a number of steps that would seem to hang", () => {
  const x = torch.ones([3, 2]);
  for (const niter of [-1, 10_001, 2 ** 31]) {
    expect(() => torch.pcaLowrank(x, { niter })).toThrow(
      "pcaLowrank: expected niter in [0, 10000]",
    );
    expect(() => torch.svdLowrank(x, { q: 1, niter })).toThrow(torch.ValueError);
  }
});
