// What programs/train.mjs gives, and what must be true of it on every host.
import { expect } from "vitest";

export interface Answer {
  shown: string;
  sum: number[];
  product: number[][];
  gradient: number[];
  random: number[];
  weight: number[];
  loss: number;
}

export function expectTrained(answer: Answer): void {
  expect(answer.shown).toBe("Linear(in_features=2, out_features=1, bias=True)");
  expect(answer.sum).toEqual([4, 6]);
  expect(answer.product).toEqual([
    [3, 3],
    [3, 3],
  ]);
  expect(answer.gradient).toEqual([2, 4]);
  expect(answer.weight[0]).toBeCloseTo(2, 4);
  expect(answer.weight[1]).toBeCloseTo(-3, 4);
  expect(answer.loss).toBeLessThan(1e-9);
}

/** What PyTorch draws next after the program's draws from seed 0. */
export function expectDrawn({ random }: Answer): void {
  expect(random[0]).toBeCloseTo(1.0909277, 6);
  expect(random[1]).toBeCloseTo(-1.4059384, 6);
}
