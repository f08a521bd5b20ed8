// torch.backends and the switches between speed and exactness.
import { ValueError } from "../errors.js";
import * as ops from "../ops.gen.js";
import { isAvailable } from "./device.js";

/** An object with a boolean property per switch. */
function switches<N extends string>(prefix: string, names: readonly N[]): Record<N, boolean> {
  const target = {} as Record<N, boolean>;
  for (const name of names) {
    Object.defineProperty(target, name, {
      enumerable: true,
      get: () => ops._cudaGetSwitch(`${prefix}.${name}`) !== 0,
      set: (on: unknown) => {
        if (typeof on !== "boolean") {
          throw new ValueError(`${name}: expected true or false, got ${String(on)}`);
        }
        ops._cudaSetSwitch(`${prefix}.${name}`, on ? 1 : 0);
      },
    });
  }
  return target;
}

const matmul = switches("matmul", [
  "allowTf32",
  "allowFp16ReducedPrecisionReduction",
  "allowBf16ReducedPrecisionReduction",
]);

/**
 * torch.backends.cuda: `matmul.allowTf32` lets float32 products use TF32 (off, as in PyTorch); the
 * other two let sums of half products stay in half precision (on).
 */
export const cuda = {
  matmul,
  /** Whether CUDA can be used. */
  isBuilt: isAvailable,
};

/**
 * torch.backends.cudnn: `allowTf32` lets float32 convolutions use TF32 (on, as in PyTorch),
 * `benchmark` measures algorithms, `deterministic` takes only repeatable ones.
 */
export const cudnn = switches("cudnn", ["allowTf32", "benchmark", "deterministic"]);

/** Only repeatable algorithms from now on, everywhere; slower ones where there is a choice. */
export function useDeterministicAlgorithms(mode: boolean): void {
  ops._cudaSetSwitch("deterministic", mode ? 1 : 0);
}
export function areDeterministicAlgorithmsEnabled(): boolean {
  return ops._cudaGetSwitch("deterministic") !== 0;
}

export type MatmulPrecision = "highest" | "high" | "medium";
let asked: MatmulPrecision = "highest";

/** "highest" multiplies float32 exactly; "high" and "medium" let CUDA use TF32. */
export function setFloat32MatmulPrecision(precision: MatmulPrecision): void {
  if (!["highest", "high", "medium"].includes(precision)) {
    throw new ValueError(
      `setFloat32MatmulPrecision: expected "highest", "high" or "medium", got "${precision}"`,
    );
  }
  asked = precision;
  matmul.allowTf32 = precision !== "highest";
}

/** What setFloat32MatmulPrecision() asked for, as far as `allowTf32` was not changed since. */
export function getFloat32MatmulPrecision(): MatmulPrecision {
  if (matmul.allowTf32) return asked === "highest" ? "high" : asked;
  return "highest";
}
