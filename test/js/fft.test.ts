// Fourier transforms against their definition, and against each other.
import { describe, expect, test } from "vitest";
import * as torch from "../../js/src/index.js";
import { gradcheck, gradgradcheck } from "../../js/src/gradcheck.js";

const { fft, Tensor } = torch;
type Tensor = torch.Tensor;

const complexNoise = (size: number[], dtype = torch.complex128) => torch.randn(size, { dtype });
const noise = (size: number[]) => torch.randn(size, { dtype: torch.float64 });
const close = (a: Tensor, b: Tensor, tolerance = 1e-10) =>
  torch.allclose(a, b, { rtol: tolerance, atol: tolerance });

/** The matrix of exp(-2 pi i j k / n). */
function fourierMatrix(n: number): Tensor {
  const k = torch.arange(n, { dtype: torch.float64 });
  const angle = torch
    .outer(k, k)
    .remainder(n)
    .mul((-2 * Math.PI) / n);
  return torch.complex(angle.cos(), angle.sin());
}

describe("fft", () => {
  const lengths = [
    ...Array.from({ length: 40 }, (_, i) => i + 1),
    64,
    97,
    100,
    101,
    128,
    360,
    1009,
  ];
  test.each(lengths)("of %i points is the sum it is defined by", (n) => {
    torch.manualSeed(n);
    const x = complexNoise([2, n]);
    const y = fft.fft(x);
    expect(close(y, x.matmul(fourierMatrix(n)), 1e-9)).toBe(true);
    expect(close(fft.ifft(y), x)).toBe(true);
  });

  test("keeps float32's precision for long and for prime lengths", () => {
    for (const n of [4096, 4099]) {
      const x = complexNoise([n], torch.complex64);
      const y = fft.fft(x);
      expect(y.dtype).toBe(torch.complex64);
      const exact = fft.fft(x.to(torch.complex128));
      expect(close(y.to(torch.complex128), exact, 1e-4)).toBe(true);
    }
  });

  test("real transforms are halves of complex ones and go back", () => {
    for (const n of [1, 2, 5, 8, 13]) {
      const x = noise([3, n]);
      const half = fft.rfft(x);
      expect(half.shape).toEqual([3, Math.floor(n / 2) + 1]);
      expect(close(half, fft.fft(x).narrow(1, 0, half.size(1)))).toBe(true);
      expect(close(fft.irfft(half, n), x)).toBe(true);
      expect(close(fft.hfft(fft.ihfft(x), n), x)).toBe(true);
    }
  });

  test("scales by norm", () => {
    const x = complexNoise([6]);
    expect(close(fft.fft(x, { norm: "ortho" }).mul(Math.sqrt(6)), fft.fft(x))).toBe(true);
    expect(close(fft.fft(x, { norm: "forward" }).mul(6), fft.fft(x))).toBe(true);
    expect(close(fft.ifft(x, { norm: "forward" }).div(6), fft.ifft(x))).toBe(true);
  });

  test("over several dims is one after the other, from any layout", () => {
    const x = complexNoise([4, 3, 5]).transpose(0, 2);
    const expected = fft.fft(fft.fft(fft.fft(x, null, 0), null, 1), null, 2);
    expect(close(fft.fftn(x), expected)).toBe(true);
    expect(close(fft.ifftn(fft.fftn(x)), x)).toBe(true);
    const real = noise([4, 6]);
    expect(close(fft.irfft2(fft.rfft2(real)), real)).toBe(true);
    expect(close(fft.hfft2(fft.ihfft2(real)), real)).toBe(true);
  });

  test("shifts and names frequencies", () => {
    expect(fft.fftfreq(5, 0.5).mul(2.5).round().tolist()).toEqual([0, 1, 2, -2, -1]);
    expect(fft.rfftfreq(4).tolist()).toEqual([0, 0.25, 0.5]);
    const x = torch.arange(6).reshape(2, 3);
    expect(fft.fftshift(x).tolist()).toEqual([
      [5, 3, 4],
      [2, 0, 1],
    ]);
    expect(fft.ifftshift(fft.fftshift(x)).equal(x)).toBe(true);
  });

  test("has derivatives of any order", () => {
    const x = noise([2, 5]).requiresGrad_();
    const z = complexNoise([2, 3]).requiresGrad_();
    for (const fn of [(t: Tensor) => fft.rfft(t), (t: Tensor) => fft.fft2(t)]) {
      expect(gradcheck(fn, [x])).toBe(true);
      expect(gradgradcheck(fn, [x])).toBe(true);
    }
    for (const fn of [(t: Tensor) => fft.irfft(t), (t: Tensor) => fft.hfftn(t)])
      expect(gradcheck(fn, [z])).toBe(true);
  });

  test("takes empty batches, refuses what has no points", () => {
    expect(fft.fft(complexNoise([0, 4])).shape).toEqual([0, 4]);
    expect(() => fft.fft(complexNoise([4, 0]))).toThrow(
      "fft.fft: expected at least one point, got 0",
    );
    expect(() => fft.rfft(complexNoise([4]))).toThrow(
      "fft.rfft: expected a real tensor, got complex128",
    );
    expect(() => fft.fftn(noise([4]), [2, 2])).toThrow("fft.fftn: 2 sizes for a tensor of 1 dims");
    expect(() => fft.fft(torch.zeros([4], { dtype: torch.float16 }))).toThrow("float16");
  });
});

describe("stft", () => {
  test("goes back to the signal", () => {
    const window = torch.ones([16], { dtype: torch.float64 }).mul(0.5);
    const x = noise([2, 64]);
    const options = { window, hopLength: 4, center: true };
    const spectra = torch.stft(x, 16, { ...options, returnComplex: true });
    expect(spectra.shape).toEqual([2, 9, 17]);
    expect(close(torch.istft(spectra, 16, { ...options, length: 64 }), x)).toBe(true);
  });
});
