// The random generators of CUDA devices.
import { readSeed, seedBits } from "../generator.js";
import * as ops from "../ops.gen.js";
import type { Tensor } from "../tensor.js";
import { deviceCount, exactIndex, isAvailable, type CudaDevice } from "./device.js";

// Generators of devices have the numbers -1 (cuda:0), -2, ... in the core.
const generatorOf = (device: CudaDevice, op: string) => -1 - exactIndex(device, op);
const all = () => Array.from({ length: deviceCount() }, (_, i) => i);

/** Starts the current device's generator over; does nothing where CUDA cannot be used. */
export function manualSeed(seed: number | bigint): void {
  const bits = seedBits("manualSeed", seed);
  if (isAvailable()) ops._generatorManualSeed(generatorOf(null, "manualSeed"), bits);
}

/** Starts the generators of all devices over. */
export function manualSeedAll(seed: number | bigint): void {
  const bits = seedBits("manualSeedAll", seed);
  for (const i of all()) ops._generatorManualSeed(generatorOf(i, "manualSeedAll"), bits);
}

/** Seeds the current device's generator from the system's entropy and returns the seed. */
export function seed(): number {
  return ops._generatorSeed(generatorOf(null, "seed"));
}

/** Seeds the generators of all devices with one number from the system's entropy. */
export function seedAll(): void {
  const devices = all();
  if (devices.length > 0) manualSeedAll(ops._generatorSeed(generatorOf(0, "seedAll")));
}

/** The seed that the current device's generator started from. */
export function initialSeed(): number | bigint {
  return readSeed(ops._generatorInitialSeed(generatorOf(null, "initialSeed")));
}

/** The state of a device's generator: 16 bytes on the CPU, interchangeable with PyTorch's. */
export function getRngState(device: CudaDevice = null): Tensor {
  return ops._generatorGetState(generatorOf(device, "getRngState"));
}

/** Restores a state of getRngState(). */
export function setRngState(state: Tensor, device: CudaDevice = null): void {
  ops._generatorSetState(generatorOf(device, "setRngState"), state);
}

/** The states of all devices. */
export function getRngStateAll(): Tensor[] {
  return all().map((i) => getRngState(i));
}

/** Restores the states of getRngStateAll(). */
export function setRngStateAll(states: readonly Tensor[]): void {
  states.forEach((state, i) => setRngState(state, i));
}
