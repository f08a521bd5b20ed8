// Eigenvalues and singular values: what their definitions say, at sizes and scales of all kinds.
import { describe, expect, test } from "vitest";
import * as torch from "../../js/src/index.js";
import { gradcheck } from "../../js/src/gradcheck.js";

const { linalg } = torch;
type Tensor = torch.Tensor;

const noise = (size: number[], dtype = torch.float64) => torch.randn(size, { dtype });
const close = (a: Tensor, b: Tensor, tolerance = 1e-10) =>
  torch.allclose(a, b, { rtol: tolerance, atol: tolerance });
const eye = (n: number, like: Tensor) => torch.eye(n, { dtype: like.dtype });
const unitary = (q: Tensor) => close(q.mH.matmul(q), eye(q.size(-1), q));
const scaled = (x: Tensor, s: Tensor) => x.mul(s.unsqueeze(-2));

describe.each([torch.float64, torch.complex128])("%s", (dtype) => {
  test.each([1, 2, 3, 10, 40])("eigh of %i rows", (n) => {
    torch.manualSeed(n);
    const x = noise([n, n], dtype);
    const a = x.add(x.mH);
    const [values, v] = linalg.eigh(a);
    expect(close(a.matmul(v), scaled(v, values!))).toBe(true);
    expect(unitary(v!)).toBe(true);
    expect(values!.equal(values!.sort().values)).toBe(true);
    const [fromUpper] = linalg.eigh(a.triu(), "U");
    expect(close(fromUpper!, values!)).toBe(true);
    expect(close(linalg.eigvalsh(a.tril()), values!)).toBe(true);
  });

  test.each([
    [1, 1],
    [5, 3],
    [3, 5],
    [30, 30],
    [7, 1],
    [0, 3],
  ])("svd of %i x %i", (m, n) => {
    torch.manualSeed(m);
    const a = noise([2, m, n], dtype);
    const [u, s, vh] = linalg.svd(a, false);
    expect(close(scaled(u!, s!).matmul(vh!), a)).toBe(true);
    expect(close(linalg.svdvals(a), s!)).toBe(true);
    const [full, , fullVh] = linalg.svd(a);
    expect(unitary(full!)).toBe(true);
    expect(unitary(fullVh!.mH)).toBe(true);
    expect(full!.shape).toEqual([2, m, m]);
  });

  test.each([1, 2, 5, 30])("eig of %i rows", (n) => {
    torch.manualSeed(n);
    const a = noise([n, n], dtype);
    const [values, v] = linalg.eig(a);
    const complex = a.to(torch.complex128);
    expect(close(complex.matmul(v!), scaled(v!, values!), 1e-9)).toBe(true);
    expect(close(v!.abs().pow(2).sum(0), torch.ones([n], { dtype: torch.float64 }))).toBe(true);
  });

  test("derivatives of what does not depend on signs, phases and order", () => {
    torch.manualSeed(1);
    const x = noise([3, 3], dtype).requiresGrad_();
    const projector = (v: Tensor) => v.narrow(-1, 0, 1).matmul(v.narrow(-1, 0, 1).mH);
    const hermitian = (t: Tensor) => linalg.eigh(t.add(t.mH));
    expect(gradcheck((t: Tensor) => hermitian(t).eigenvalues, [x])).toBe(true);
    expect(gradcheck((t: Tensor) => projector(hermitian(t).eigenvectors), [x])).toBe(true);
    // The order of eigenvalues is free, and need not be the same for a neighbouring matrix.
    const powerSums = (t: Tensor) => {
      const { eigenvalues: l } = linalg.eig(t);
      return torch.stack([l.sum(), l.mul(l).sum(), l.mul(l).mul(l).sum()]);
    };
    expect(gradcheck(powerSums, [x])).toBe(true);
    expect(gradcheck((t: Tensor) => linalg.eig(t).eigenvectors.abs().sum(-1), [x])).toBe(true);
    for (const size of [
      [3, 3],
      [4, 2],
      [2, 4],
    ]) {
      const a = noise(size, dtype).requiresGrad_();
      const svd = (t: Tensor) => linalg.svd(t, false);
      expect(gradcheck((t: Tensor) => linalg.svdvals(t), [a])).toBe(true);
      expect(gradcheck((t: Tensor) => projector(svd(t).U), [a])).toBe(true);
      expect(gradcheck((t: Tensor) => projector(svd(t).Vh.mH), [a])).toBe(true);
      const polar = (t: Tensor) => {
        const { U, Vh } = svd(t);
        return U.matmul(Vh);
      };
      expect(gradcheck(polar, [a])).toBe(true);
    }
  });
});

describe("matrices of low rank and of any scale", () => {
  const a = noise([6, 2]).matmul(noise([2, 5]));

  test("svd completes the bases", () => {
    for (const x of [a, torch.zeros([4, 3], { dtype: torch.float64 })]) {
      const [u, s, vh] = linalg.svd(x);
      expect(unitary(u!) && unitary(vh!)).toBe(true);
      expect(
        s!
          .narrow(0, 2, s!.size(0) - 2)
          .max()
          .item(),
      ).toBeLessThan(1e-13);
    }
  });

  test("rank, pseudo-inverse and least squares see the rank", () => {
    expect(linalg.matrixRank(a).item()).toBe(2);
    const p = linalg.pinv(a);
    expect(close(a.matmul(p).matmul(a), a)).toBe(true);
    expect(close(p.matmul(a).matmul(p), p)).toBe(true);
    const b = noise([6, 1]);
    const { solution, rank } = linalg.lstsq(a, b, { driver: "gelsd" });
    expect(rank.item()).toBe(2);
    expect(close(a.mT.matmul(a.matmul(solution)), a.mT.matmul(b))).toBe(true);
  });

  test("tiny and huge numbers", () => {
    for (const factor of [1e-200, 1e200]) {
      const s = linalg.svdvals(a.mul(factor));
      expect(close(s.div(factor), linalg.svdvals(a))).toBe(true);
      const h = a.mT.matmul(a).mul(factor);
      expect(close(linalg.eigvalsh(h).div(factor), linalg.eigvalsh(a.mT.matmul(a)))).toBe(true);
    }
  });

  test("norms and condition numbers", () => {
    const x = torch.tensor([
      [3, 0],
      [0, -4],
    ]);
    expect(linalg.cond(x).item()).toBeCloseTo(4 / 3, 5);
    expect(linalg.cond(x, 1).item()).toBeCloseTo(4 / 3, 5);
    expect(linalg.norm(x, "nuc").item()).toBeCloseTo(7, 5);
    expect(linalg.matrixNorm(x, -2).item()).toBeCloseTo(3, 5);
    expect(linalg.cond(torch.zeros([2, 2]), 1).item()).toBe(Infinity);
  });

  test("defective matrices have eigenvalues too", () => {
    const jordan = torch.tensor([
      [2, 1, 0],
      [0, 2, 1],
      [0, 0, 2],
    ]);
    expect(linalg.eigvals(jordan).sub(2).abs().max().item()).toBeLessThan(1e-3);
    const turn = torch.tensor([
      [0, -1],
      [1, 0],
    ]);
    expect(linalg.eigvals(turn.float()).imag.abs().tolist()).toEqual([1, 1]);
  });

  test("infinities and NaN are refused", () => {
    const bad = torch.full([2, 2], NaN);
    expect(() => linalg.svd(bad)).toThrow("linalg.svd: expected finite numbers, got infinities");
    expect(() => linalg.eigh(bad)).toThrow("linalg.eigh: expected finite numbers");
    expect(() => linalg.eig(bad)).toThrow("linalg.eig: expected finite numbers");
  });
});
