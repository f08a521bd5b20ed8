// The order of shuffled batches and random splits, number for number as in PyTorch 1.13.
import { expect, test } from "vitest";
import * as torch from "cresset";
import { DataLoader, randomSplit, TensorDataset } from "cresset";

/** Two epochs of batches after `manualSeed(3)`, then the next draw of the default generator. */
function epochs(options: { shuffle?: boolean; generator?: torch.Generator }) {
  torch.manualSeed(3);
  const loader = new DataLoader(new TensorDataset(torch.arange(7)), { batchSize: 3, ...options });
  const batches = [1, 2].map(() => [...loader].map(([batch]) => batch!.tolist()));
  return [...batches, torch.randint(0, 1000, [1]).item()];
}

test("shuffled batches", () => {
  expect(epochs({ shuffle: true })).toEqual([
    [[3, 2, 5], [4, 1, 0], [6]],
    [[3, 1, 6], [0, 2, 4], [5]],
    981,
  ]);
});

test("batches in order draw a seed too", () => {
  const inOrder = [[0, 1, 2], [3, 4, 5], [6]];
  expect(epochs({})).toEqual([inOrder, inOrder, 360]);
});

test("a generator of one's own", () => {
  const generator = new torch.Generator();
  generator.manualSeed(5);
  expect(epochs({ shuffle: true, generator })).toEqual([
    [[2, 4, 3], [5, 0, 6], [1]],
    [[4, 1, 0], [2, 3, 6], [5]],
    986,
  ]);
});

test("random splits", () => {
  const data = new TensorDataset(torch.arange(10));
  const split = (lengths: number[]) => {
    torch.manualSeed(3);
    return randomSplit(data, lengths).map((part) => part.indices);
  };
  expect(split([3, 7])).toEqual([
    [6, 0, 3],
    [7, 8, 5, 1, 9, 2, 4],
  ]);
  expect(split([0.55, 0.45])).toEqual([
    [6, 0, 3, 7, 8, 5],
    [1, 9, 2, 4],
  ]);
});
