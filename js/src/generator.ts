// Generator: a stream of random numbers with a seed and a state of its own.
import { Device, device as toDevice, type DeviceLike } from "./dtype.js";
import { ValueError } from "./errors.js";
import * as ops from "./ops.gen.js";
import type { Tensor } from "./tensor.js";

// Generators are few and small (5 KB): those that are never disposed of wait for a full
// collection and a turn of the event loop.
const registry = new FinalizationRegistry<number>((id) => ops._generatorDispose(id));

/** The seed as the core takes it: all 64 bits count for initialSeed(). */
export function seedBits(op: string, seed: number | bigint): bigint {
  const integral = typeof seed === "bigint" || Number.isInteger(seed);
  const value = integral ? BigInt(seed) : 0n;
  if (!integral || value < -(2n ** 63n) || value >= 2n ** 64n) {
    throw new ValueError(`${op}: expected an integer seed in [-2^63, 2^64), got ${seed}`);
  }
  return BigInt.asIntN(64, value);
}

/** A seed read back from the core: a bigint where a number would not be exact. */
export function readSeed(value: unknown): number | bigint {
  const bits = BigInt.asUintN(64, BigInt(value as number | bigint));
  return bits <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(bits) : bits;
}

/**
 * A random generator apart from the default one, for the `generator` option of random operators:
 * `torch.rand([2], { generator: new torch.Generator().manualSeed(1) })`.
 */
export class Generator {
  /** Number of the generator in the core. */
  readonly _id: number;
  /** Where the generator draws: "cpu", or a CUDA device. */
  readonly device: Device;
  constructor(device: DeviceLike = "cpu") {
    const wanted = toDevice(device);
    const index = wanted.type === "cuda" ? (wanted.index ?? ops._cudaCurrentDevice()) : 0;
    this.device = new Device(wanted.type, index);
    this._id = ops._generatorCreate(67280421310721, this.device);
    registry.register(this, this._id, this);
  }
  /** Starts over from a seed. */
  manualSeed(seed: number | bigint): this {
    ops._generatorManualSeed(this._id, seedBits("manualSeed", seed));
    return this;
  }
  /** Seeds from the system's entropy and returns the seed. */
  seed(): number {
    return ops._generatorSeed(this._id);
  }
  initialSeed(): number | bigint {
    return readSeed(ops._generatorInitialSeed(this._id));
  }
  /** The state as 5056 bytes (16 of a CUDA device's), interchangeable with PyTorch's. */
  getState(): Tensor {
    return ops._generatorGetState(this._id);
  }
  setState(state: Tensor): this {
    ops._generatorSetState(this._id, state);
    return this;
  }
  /** Frees the generator now; using it afterwards is an error. */
  dispose(): void {
    registry.unregister(this);
    ops._generatorDispose(this._id);
  }
}
