// Datasets and loaders over stand-in tensors, and the order in which they draw random numbers.
import { beforeEach, describe, expect, expectTypeOf, test } from "vitest";
import {
  BatchSampler,
  connectData,
  DataLoader,
  Dataset,
  defaultCollate,
  randomSplit,
  SequentialSampler,
  Subset,
  TensorDataset,
  type GeneratorLike,
} from "../../js/src/data.js";
import { IndexError, ShapeError, TypeError_, ValueError } from "../../js/src/errors.js";
import type { Tensor } from "../../js/src/tensor.js";

/** A list of rows that notes how it was read. */
class Rows {
  reads: string[] = [];
  constructor(readonly rows: unknown[]) {}
  get shape() {
    return [this.rows.length];
  }
  select(_dim: number, index: number) {
    this.reads.push("select");
    return new Rows([this.rows[index]]);
  }
  narrow(_dim: number, start: number, length: number) {
    this.reads.push("narrow");
    return new Rows(this.rows.slice(start, start + length));
  }
  clone() {
    return new Rows([...this.rows]);
  }
  indexSelect(_dim: number, index: Rows) {
    this.reads.push("indexSelect");
    return new Rows(index.rows.map((i) => this.rows[i as number]));
  }
}

const rows = (...values: unknown[]) => new Rows(values) as unknown as Tensor;
const read = (tensor: Tensor) => (tensor as unknown as Rows).rows;
const generator = (name: string) => ({ name, manualSeed: () => null });

let draws: string[] = [];
const nameOf = (source: GeneratorLike | null) =>
  source === null ? "default" : (source as ReturnType<typeof generator>).name;

beforeEach(() => {
  draws = [];
  let seeds = 0n;
  connectData({
    isTensor: (value): value is Tensor => value instanceof Rows,
    stack: (tensors) => rows(...tensors.map((tensor) => read(tensor))),
    tensor: (values) => rows(...values),
    indices: (values) => rows(...values),
    randperm: (n, source) => {
      draws.push(`randperm ${n} of ${nameOf(source)}`);
      return Array.from({ length: n }, (_, i) => n - 1 - i);
    },
    randomSeed: (source) => {
      draws.push(`seed ${seeds} of ${nameOf(source)}`);
      return seeds++;
    },
    seededGenerator: (seed) => generator(`seed ${seed}`),
  });
});

describe("batches of tensors", () => {
  const x = () => rows(0, 1, 2, 3, 4);
  const y = () => rows("a", "b", "c", "d", "e");

  test("in order they are copied slices", () => {
    const data = new TensorDataset(x(), y());
    const loader = new DataLoader(data, { batchSize: 2 });
    expect(loader.length).toBe(3);
    const batches = [...loader].map(([a, b]) => [read(a), read(b)]);
    expect(batches).toEqual([
      [
        [0, 1],
        ["a", "b"],
      ],
      [
        [2, 3],
        ["c", "d"],
      ],
      [[4], ["e"]],
    ]);
    expect((data.tensors[0] as unknown as Rows).reads).toEqual(["narrow", "narrow", "narrow"]);
  });

  test("in random order they are one gather each", () => {
    const data = new TensorDataset(x());
    const loader = new DataLoader(data, { batchSize: 2, shuffle: true, dropLast: true });
    expect(loader.length).toBe(2);
    expect([...loader].map(([a]) => read(a))).toEqual([
      [4, 3],
      [2, 1],
    ]);
    expect((data.tensors[0] as unknown as Rows).reads).toEqual(["indexSelect", "indexSelect"]);
  });

  test("their types are those of the dataset's tensors", () => {
    const loader = new DataLoader(new TensorDataset(x(), y()));
    for (const batch of loader) expectTypeOf(batch).toEqualTypeOf<[Tensor, Tensor]>();
    const custom = new DataLoader(new TensorDataset(x()), { collateFn: (items) => items.length });
    for (const batch of custom) expectTypeOf(batch).toBeNumber();
    expect([...custom]).toEqual([1, 1, 1, 1, 1]);
  });

  test("unequal sizes are refused", () => {
    expect(() => new TensorDataset(rows(1), rows(1, 2))).toThrow(ShapeError);
    expect(() => new TensorDataset()).toThrow(ShapeError);
  });
});

describe("random numbers are drawn as PyTorch draws them", () => {
  test("a seed for the workers, then one for the order", () => {
    const loader = new DataLoader(new TensorDataset(rows(1, 2, 3)), { shuffle: true });
    for (const _ of [1, 2]) expect([...loader].length).toBe(3);
    expect(draws).toEqual([
      "seed 0 of default",
      "seed 1 of default",
      "randperm 3 of seed 1",
      "seed 2 of default",
      "seed 3 of default",
      "randperm 3 of seed 3",
    ]);
  });

  test("a seed for the workers even in order", () => {
    expect([...new DataLoader(new TensorDataset(rows(1)))].length).toBe(1);
    expect(draws).toEqual(["seed 0 of default"]);
  });

  test("both from a given generator", () => {
    const options = { shuffle: true, generator: generator("mine") };
    expect([...new DataLoader(new TensorDataset(rows(1, 2)), options)].length).toBe(2);
    // The second order is for the rest that PyTorch draws after a whole division.
    expect(draws).toEqual(["seed 0 of mine", "randperm 2 of mine", "randperm 2 of mine"]);
  });
});

describe("splitting", () => {
  const data = () => new TensorDataset(rows(...Array.from({ length: 10 }, (_, i) => i)));
  const lengths = (parts: Subset<unknown>[]) => parts.map((part) => part.length);

  test("by lengths and by fractions", () => {
    const [a, b] = randomSplit(data(), [3, 7]);
    expect(a!.indices).toEqual([9, 8, 7]);
    expect(b!.length).toBe(7);
    expect(lengths(randomSplit(data(), [0.55, 0.45]))).toEqual([6, 4]);
    expect(lengths(randomSplit(data(), [0.33, 0.33, 0.34]))).toEqual([4, 3, 3]);
    expect(lengths(randomSplit(new TensorDataset(rows(1)), [1]))).toEqual([1]);
    for (const wrong of [[3, 8], [3.5, 6.5], [-1, 11], [1.5, -0.5], [0.5]]) {
      expect(() => randomSplit(data(), wrong)).toThrow(ValueError);
    }
  });

  test("a part gathers through the whole", () => {
    const [part] = randomSplit(data(), [4, 6]);
    const batches = [...new DataLoader(part!, { batchSize: 3 })];
    expect(batches.map(([a]) => read(a!))).toEqual([[9, 8, 7], [6]]);
    expect(read(part!.get(1)[0]!)).toEqual([8]);
    expect(() => part!.get(4)).toThrow(IndexError);
  });
});

describe("a dataset of one's own", () => {
  class Squares extends Dataset<{ n: number; name: string; pair: [number, boolean] }> {
    readonly length = 3;
    get(i: number) {
      return { n: i * i, name: `#${i}`, pair: [i, i > 0] as [number, boolean] };
    }
  }

  test("is collated place by place", () => {
    const [batch] = new DataLoader(new Squares(), { batchSize: 3 });
    expectTypeOf(batch!).toEqualTypeOf<{ n: Tensor; name: string[]; pair: [Tensor, Tensor] }>();
    expect(read(batch!.n)).toEqual([0, 1, 4]);
    expect(batch!.name).toEqual(["#0", "#1", "#2"]);
    expect(batch!.pair.map(read)).toEqual([
      [0, 1, 2],
      [false, true, true],
    ]);
  });

  test("comes item by item without a batch size", () => {
    const loader = new DataLoader(new Squares(), { batchSize: null });
    expect(loader.length).toBe(3);
    expect([...loader].map(({ name }) => name)).toEqual(["#0", "#1", "#2"]);
  });

  test("may have its own order", () => {
    const collateFn = (items: { n: number }[]) => items.map(({ n }) => n);
    const inOrder = new DataLoader(new Squares(), { sampler: [2, 0], batchSize: 2, collateFn });
    expect([...inOrder]).toEqual([[4, 0]]);
    const batches = new BatchSampler(new SequentialSampler({ length: 3 }), 2);
    const given = new DataLoader(new Squares(), { batchSampler: batches, collateFn });
    expect(given.length).toBe(2);
    expect([...given]).toEqual([[0, 1], [4]]);
  });

  test("may be asynchronous", async () => {
    class Slow extends Dataset<Promise<number>> {
      readonly length = 3;
      async get(i: number) {
        await new Promise((resolve) => setTimeout(resolve, 3 - i));
        return i;
      }
    }
    const loader = new DataLoader(new Slow(), { batchSize: 2 });
    const batches: unknown[] = [];
    for await (const batch of loader) {
      expectTypeOf(batch).toEqualTypeOf<Tensor>();
      batches.push(read(batch));
    }
    expect(batches).toEqual([[0, 1], [2]]);
    expect(() => [...loader]).toThrow(/for await/);
  });

  test("lets the event loop run between batches", async () => {
    let ticks = 0;
    const timer = setInterval(() => ticks++, 0);
    for await (const _ of new DataLoader(new Squares())) {
      const begin = performance.now();
      while (performance.now() - begin < 3);
    }
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(0);
  });

  test("reports the error of an item", async () => {
    class Broken extends Squares {
      override get(i: number) {
        if (i === 1) throw new Error("item 1 is broken");
        return super.get(i);
      }
    }
    const loader = new DataLoader(new Broken());
    expect(() => [...loader]).toThrow("item 1 is broken");
    await expect(async () => {
      for await (const _ of loader);
    }).rejects.toThrow("item 1 is broken");
  });
});

test("what cannot be collated is named", () => {
  expect(() => defaultCollate([1, "a"])).toThrow(/cannot mix number and string/);
  expect(() => defaultCollate([[1], [1, 2]])).toThrow(ShapeError);
  expect(() => defaultCollate([null])).toThrow(TypeError_);
  const typed = defaultCollate([Float32Array.of(1), Float32Array.of(2)]);
  expect(read(typed)).toEqual([[1], [2]]);
});

test("options that exclude each other are refused", () => {
  const data = new TensorDataset(rows(1));
  for (const options of [
    { batchSize: 0 },
    { batchSize: 1.5 },
    { shuffle: true, sampler: [0] },
    { batchSampler: [[0]], batchSize: 2 },
    { batchSize: null, dropLast: true },
  ]) {
    expect(() => new DataLoader(data, options)).toThrow(ValueError);
  }
});
