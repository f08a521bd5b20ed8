// Datasets, samplers and the loader that turns them into batches, as in torch.utils.data.
import { describe } from "./dtype.js";
import { IndexError, ShapeError, TypeError_, ValueError } from "./errors.js";
import type { Tensor } from "./tensor.js";

/** A random generator, as far as data loading passes one on. */
export interface GeneratorLike {
  manualSeed(seed: number | bigint): unknown;
}

/** The tensor functions that this module calls; connected once, when the library starts. */
export interface DataRuntime {
  isTensor(value: unknown): value is Tensor;
  stack(tensors: readonly Tensor[]): Tensor;
  /** `torch.tensor` with its usual choice of dtype. */
  tensor(values: NumberList | readonly (number | bigint | boolean)[]): Tensor;
  /** A 1-d int64 tensor of indices. */
  indices(values: readonly number[]): Tensor;
  /** `torch.randperm(n, generator)`; `null` is the default generator. */
  randperm(n: number, generator: GeneratorLike | null): ArrayLike<number>;
  /** `torch.empty((), int64).random_(generator)`: a number in [0, 2^63). */
  randomSeed(generator: GeneratorLike | null): bigint;
  /** A new generator with that seed. */
  seededGenerator(seed: bigint): GeneratorLike;
}

let runtime: DataRuntime;

/** Connects the tensor functions; the library does this itself. */
export function connectData(functions: DataRuntime): void {
  runtime = functions;
}

type NumberList =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array;

/** What the default collation makes of items of type `T`. */
export type Collated<T> = T extends Tensor | number | bigint | boolean | NumberList
  ? Tensor
  : T extends string
    ? string[]
    : T extends object
      ? { -readonly [K in keyof T]: Collated<T[K]> }
      : never;

/** A list of items by index. Items may be promises; then the loader is read with `for await`. */
export abstract class Dataset<Item> {
  abstract readonly length: number;
  abstract get(index: number): Item;

  /**
   * The items at `indices` as one batch, equal to collating them one by one. Optional: a dataset
   * that can gather faster than item by item defines it.
   */
  getBatch?(indices: readonly number[]): Collated<Awaited<Item>>;
}

function checkDataset(name: string, dataset: unknown): void {
  if (typeof (dataset as Partial<Dataset<unknown>> | null)?.get === "function") return;
  throw new TypeError_(`${name}: expected a Dataset, got ${describe(dataset)}`);
}

function checkIterable(name: string, what: string, given: unknown): void {
  if (typeof (given as Partial<Sampler> | null)?.[Symbol.iterator] === "function") return;
  throw new TypeError_(`${name}: expected ${what}, got ${describe(given)}`);
}

/** The length of a dataset, or of what else has one. */
function lengthOf(name: string, source: { readonly length: number }): number {
  const length: unknown = (source as { length?: unknown } | null)?.length;
  if (typeof length === "number" && Number.isInteger(length) && length >= 0) return length;
  throw new TypeError_(`${name}: expected a dataset with a length, got ${describe(length)}`);
}

function checkIndices(name: string, indices: readonly number[]): void {
  if (!Array.isArray(indices) && !ArrayBuffer.isView(indices)) {
    throw new TypeError_(`${name}: expected a list of indices, got ${describe(indices)}`);
  }
  const odd = indices.findIndex((index) => !Number.isInteger(index));
  if (odd < 0) return;
  throw new TypeError_(`${name}: expected integers as indices, got ${describe(indices[odd])}`);
}

/** Tensors of equal first size; item `i` holds row `i` of each. */
export class TensorDataset<Tensors extends readonly Tensor[]> extends Dataset<Tensors> {
  readonly tensors: Tensors;
  readonly length: number;

  constructor(...tensors: Tensors) {
    super();
    for (const tensor of tensors as readonly unknown[]) {
      if (runtime.isTensor(tensor)) continue;
      throw new TypeError_(`TensorDataset: expected Tensors, got ${describe(tensor)}`);
    }
    const sizes = tensors.map((tensor) => tensor.shape[0]);
    if (sizes[0] === undefined || sizes.some((size) => size !== sizes[0])) {
      const shapes = tensors.map((tensor) => `[${tensor.shape.join(", ")}]`).join(", ");
      throw new ShapeError(`TensorDataset: expected equal first sizes, got shapes ${shapes}`);
    }
    this.tensors = tensors;
    this.length = sizes[0];
  }

  get(index: number): Tensors {
    return this.tensors.map((tensor) => tensor.select(0, index)) as readonly Tensor[] as Tensors;
  }

  /** One gather per tensor; a batch is a copy, so changing it leaves the dataset alone. */
  override getBatch(indices: readonly number[]): Collated<Awaited<Tensors>> {
    checkIndices("TensorDataset", indices);
    const [start = 0] = indices;
    const consecutive = indices.every((index, i) => index === start + i);
    const select = consecutive
      ? (tensor: Tensor) => tensor.narrow(0, start, indices.length).clone()
      : (tensor: Tensor) => tensor.indexSelect(0, runtime.indices(indices));
    return this.tensors.map(select) as unknown as Collated<Awaited<Tensors>>;
  }
}

/** The part of a dataset at the given indices. */
export class Subset<Item> extends Dataset<Item> {
  constructor(
    readonly dataset: Dataset<Item>,
    readonly indices: readonly number[],
  ) {
    super();
    checkDataset("Subset", dataset);
    checkIndices("Subset", indices);
    if (!dataset.getBatch) return;
    this.getBatch = (positions) => {
      checkIndices("Subset", positions);
      return dataset.getBatch!(positions.map((i) => this.indexAt(i)));
    };
  }

  get length(): number {
    return this.indices.length;
  }

  get(index: number): Item {
    return this.dataset.get(this.indexAt(index));
  }

  private indexAt(position: number): number {
    const index = Number.isInteger(position) ? this.indices[position] : undefined;
    if (index !== undefined) return index;
    const given = describe(position);
    throw new IndexError(`Subset: expected an index in [0, ${this.length}), got ${given}`);
  }
}

/**
 * Splits a dataset at random into parts of the given lengths, or of the given fractions when they
 * add up to 1; what fractions leave over goes to the first parts, one item each.
 */
export function randomSplit<Item>(
  dataset: Dataset<Item>,
  lengths: readonly number[],
  generator: GeneratorLike | null = null,
): Subset<Item>[] {
  checkDataset("randomSplit", dataset);
  const total = lengthOf("randomSplit", dataset);
  if (!Array.isArray(lengths) || lengths.some((length) => typeof length !== "number")) {
    throw new TypeError_(`randomSplit: expected a list of lengths, got ${describe(lengths)}`);
  }
  const sum = lengths.reduce((a, b) => a + b, 0);
  const fractions = Math.abs(sum - 1) <= 1e-9 && sum !== total;
  const sizes = lengths.map((length) => (fractions ? Math.floor(total * length) : length));
  const left = total - sizes.reduce((a, b) => a + b, 0);
  const whole = sizes.every((size) => Number.isInteger(size) && size >= 0);
  if (!whole || left < 0 || (left > 0 && !fractions)) {
    throw new ValueError(
      `randomSplit: expected lengths that add up to ${total}, or fractions to 1, ` +
        `got [${lengths.join(", ")}]`,
    );
  }
  for (let i = 0; i < left; i++) sizes[i % sizes.length]!++;
  const order = Array.from(runtime.randperm(total, generator));
  let start = 0;
  return sizes.map((size) => new Subset(dataset, order.slice(start, (start += size))));
}

/** Where the items of an epoch come from: indices, and how many where that is known. */
export interface Sampler<T = number> extends Iterable<T> {
  readonly length?: number;
}

/** Indices in order. */
export class SequentialSampler implements Sampler {
  constructor(private readonly source: { readonly length: number }) {}

  get length(): number {
    return lengthOf("SequentialSampler", this.source);
  }

  *[Symbol.iterator](): Generator<number> {
    const { length } = this;
    for (let i = 0; i < length; i++) yield i;
  }
}

/**
 * Indices in random order, each once. As in PyTorch an epoch without a generator draws a seed from
 * the default one and permutes with a generator of its own.
 */
export class RandomSampler implements Sampler {
  constructor(
    private readonly source: { readonly length: number },
    private readonly generator: GeneratorLike | null = null,
  ) {}

  get length(): number {
    return lengthOf("RandomSampler", this.source);
  }

  *[Symbol.iterator](): Generator<number> {
    const generator = this.generator ?? runtime.seededGenerator(runtime.randomSeed(null));
    const { length } = this;
    const order = runtime.randperm(length, generator);
    for (let i = 0; i < order.length; i++) yield order[i]!;
    // PyTorch draws another order for the rest of a division that leaves none.
    if (this.generator) runtime.randperm(length, generator);
  }
}

/** Lists of `batchSize` indices from another sampler; `dropLast` leaves out a shorter last one. */
export class BatchSampler implements Sampler<number[]> {
  constructor(
    private readonly sampler: Sampler,
    private readonly batchSize: number,
    private readonly dropLast = false,
  ) {
    checkIterable("BatchSampler", "a sampler", sampler);
    if (Number.isInteger(batchSize) && batchSize > 0) return;
    const given = describe(batchSize);
    throw new ValueError(`BatchSampler: expected a positive batchSize, got ${given}`);
  }

  get length(): number | undefined {
    const count = this.sampler.length;
    if (count === undefined) return undefined;
    return this.dropLast ? Math.floor(count / this.batchSize) : Math.ceil(count / this.batchSize);
  }

  *[Symbol.iterator](): Generator<number[]> {
    let batch: number[] = [];
    for (const index of this.sampler) {
      batch.push(index);
      if (batch.length === this.batchSize) {
        yield batch;
        batch = [];
      }
    }
    if (batch.length > 0 && !this.dropLast) yield batch;
  }
}

function kindOf(value: unknown): string {
  if (runtime.isTensor(value)) return "tensor";
  if (ArrayBuffer.isView(value)) return "typed array";
  if (Array.isArray(value)) return "list";
  return value === null ? "null" : typeof value;
}

/**
 * Turns a list of items into one batch: tensors are stacked, numbers and booleans become a tensor,
 * strings a list; lists and plain objects are collated place by place.
 */
export function defaultCollate<Item>(items: readonly Item[]): Collated<Item> {
  if (!Array.isArray(items)) {
    throw new TypeError_(`defaultCollate: expected a list of items, got ${kindOf(items)}`);
  }
  return collate(items) as Collated<Item>;
}

function collate(items: readonly unknown[]): unknown {
  const [first] = items;
  const kind = kindOf(first);
  const odd = items.findIndex((item) => kindOf(item) !== kind);
  if (odd >= 0) {
    throw new TypeError_(`defaultCollate: a batch cannot mix ${kind} and ${kindOf(items[odd])}`);
  }
  switch (kind) {
    case "tensor":
      return runtime.stack(items as Tensor[]);
    case "typed array":
      return runtime.stack((items as NumberList[]).map((item) => runtime.tensor(item)));
    case "number":
    case "bigint":
    case "boolean":
      return runtime.tensor(items as number[]);
    case "string":
      return items;
    case "list":
      return collateLists(items as unknown[][]);
    case "object":
      return collateObjects(items as Record<string, unknown>[]);
    default:
      throw new TypeError_(
        `defaultCollate: expected tensors, numbers, strings, lists or objects, got ${kind}; ` +
          `pass a collateFn`,
      );
  }
}

function collateLists(items: readonly unknown[][]): unknown[] {
  const lengths = items.map((item) => item.length);
  const { length } = items[0]!;
  if (lengths.some((other) => other !== length)) {
    throw new ShapeError(`defaultCollate: expected lists of one length, got ${lengths.join(", ")}`);
  }
  return Array.from({ length }, (_, i) => collate(items.map((item) => item[i])));
}

function collateObjects(items: readonly Record<string, unknown>[]): Record<string, unknown> {
  const keys = Object.keys(items[0]!);
  return Object.fromEntries(keys.map((key) => [key, collate(items.map((item) => item[key]))]));
}

/** How a `DataLoader` reads its dataset. */
export interface DataLoaderOptions<Item, Batch> {
  /** Items per batch (default 1); `null` gives single items, not collated. */
  batchSize?: number | null;
  /** A new random order in each epoch (default false). */
  shuffle?: boolean;
  /** Leaves out the last batch when it is shorter (default false). */
  dropLast?: boolean;
  /** Turns the items of a batch into what the loop receives (default `defaultCollate`). */
  collateFn?: (items: Awaited<Item>[]) => Batch;
  /** The order of items, instead of `shuffle`. */
  sampler?: Sampler;
  /** The indices of each batch, instead of `batchSize`, `shuffle`, `sampler` and `dropLast`. */
  batchSampler?: Sampler<number[]>;
  /** Where random numbers come from, instead of the default generator. */
  generator?: GeneratorLike | null;
}

/**
 * Batches of a dataset. Each `for … of` (or `for await … of`) over it is one epoch; the
 * asynchronous form waits for items that are promises and lets the event loop run in between.
 */
export class DataLoader<Item, Batch = Collated<Awaited<Item>>> {
  readonly dataset: Dataset<Item>;
  private readonly batches: Sampler<number[]> | null;
  private readonly sampler: Sampler;
  private readonly options: DataLoaderOptions<Item, Batch>;

  constructor(dataset: Dataset<Item>, options: DataLoaderOptions<Item, Batch> = {}) {
    checkDataset("DataLoader", dataset);
    checkOptions(options);
    const { batchSize = 1, shuffle, dropLast, sampler, batchSampler, generator } = options;
    this.dataset = dataset;
    this.options = options;
    this.sampler =
      sampler ?? (shuffle ? new RandomSampler(dataset, generator) : new SequentialSampler(dataset));
    this.batches =
      batchSampler ??
      (batchSize === null ? null : new BatchSampler(this.sampler, batchSize, dropLast));
  }

  /** The number of batches of an epoch. */
  get length(): number {
    const { length } = this.batches ?? this.sampler;
    if (length !== undefined) return length;
    throw new TypeError_("DataLoader: the sampler does not tell its length");
  }

  [Symbol.iterator](): Generator<Batch> {
    this.drawBaseSeed();
    return this.readAll();
  }

  [Symbol.asyncIterator](): AsyncGenerator<Batch> {
    this.drawBaseSeed();
    return this.readAllAsync();
  }

  /** PyTorch draws a seed for its workers in every epoch; doing so keeps later draws the same. */
  private drawBaseSeed(): void {
    runtime.randomSeed(this.options.generator ?? null);
  }

  private *readAll(): Generator<Batch> {
    if (this.batches === null) {
      for (const index of this.sampler) yield refusePromise(this.dataset.get(index)) as Batch;
      return;
    }
    for (const indices of this.batches) {
      checkBatch(indices);
      yield (
        this.gather(indices) ?? this.join(indices.map((i) => refusePromise(this.dataset.get(i))))
      );
    }
  }

  private async *readAllAsync(): AsyncGenerator<Batch> {
    const units: Iterable<number | number[]> = this.batches ?? this.sampler;
    for (const unit of units) {
      if (typeof unit === "number") yield (await this.dataset.get(unit)) as Batch;
      else {
        checkBatch(unit);
        const ready = this.gather(unit);
        yield ready ?? this.join(await Promise.all(unit.map((index) => this.dataset.get(index))));
      }
      await nextTurn();
    }
  }

  /** The batch in one go, where the dataset can do so and the default collation is wanted. */
  private gather(indices: readonly number[]): Batch | null {
    if (this.options.collateFn || !this.dataset.getBatch) return null;
    return this.dataset.getBatch(indices) as Batch;
  }

  private join(items: Awaited<Item>[]): Batch {
    const { collateFn } = this.options;
    return collateFn ? collateFn(items) : (defaultCollate(items) as Batch);
  }
}

function checkBatch(indices: unknown): void {
  if (Array.isArray(indices)) return;
  throw new TypeError_(`DataLoader: expected lists of indices, got ${describe(indices)}`);
}

function checkOptions<Item, Batch>(options: DataLoaderOptions<Item, Batch>): void {
  if (typeof options !== "object" || options === null) {
    throw new TypeError_(`DataLoader: expected an object of options, got ${describe(options)}`);
  }
  const { batchSize = 1, shuffle, dropLast, sampler, batchSampler, collateFn } = options;
  if (sampler) checkIterable("DataLoader", "a sampler", sampler);
  if (batchSampler) checkIterable("DataLoader", "a batchSampler", batchSampler);
  if (collateFn && typeof collateFn !== "function") {
    throw new TypeError_(
      `DataLoader: expected a function as collateFn, got ${describe(collateFn)}`,
    );
  }
  if (batchSize !== null && !(Number.isInteger(batchSize) && batchSize > 0)) {
    throw new ValueError(
      `DataLoader: expected a positive batchSize or null, got ${describe(batchSize)}`,
    );
  }
  if (sampler && shuffle) throw new ValueError("DataLoader: sampler excludes shuffle");
  if (batchSampler && (options.batchSize !== undefined || shuffle || sampler || dropLast)) {
    throw new ValueError(
      "DataLoader: batchSampler excludes batchSize, shuffle, sampler and dropLast",
    );
  }
  if (batchSize === null && dropLast) {
    throw new ValueError("DataLoader: dropLast needs a batchSize");
  }
}

function refusePromise<Item>(item: Item): Awaited<Item> {
  if (!(item instanceof Promise)) return item as Awaited<Item>;
  item.catch(() => {}); // The error below is the one to report.
  throw new TypeError_("DataLoader: the dataset's items are promises; read it with for await");
}

/** Resolves after the event loop has had a turn. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === "function") setImmediate(resolve);
    else setTimeout(resolve, 0);
  });
}
