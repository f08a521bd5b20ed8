// torch.cuda: which devices there are, which is the current one, what they can do.
import { Device, describe, device as toDevice, type DeviceLike } from "../dtype.js";
import { DeviceError } from "../errors.js";
import * as ops from "../ops.gen.js";
import { readJson, readText, scoped, Scope } from "./common.js";

/** A CUDA device: its number, "cuda:1", a Device; nothing for the current one. */
export type CudaDevice = number | DeviceLike | null;

/** Number of a device for the core; -1 is the current one. */
export function deviceIndex(device: CudaDevice | undefined, op: string): number {
  if (device === undefined || device === null) return -1;
  if (typeof device === "number") {
    if (Number.isInteger(device) && device >= -1) return device;
    throw new DeviceError(`${op}: expected the number of a CUDA device, got ${device}`);
  }
  if (typeof device !== "string" && !(device instanceof Device)) {
    throw new DeviceError(`${op}: expected a CUDA device, got ${describe(device)}`);
  }
  const d = toDevice(device);
  if (d.type !== "cuda") throw new DeviceError(`${op}: expected a CUDA device, got ${String(d)}`);
  return d.index ?? -1;
}

/** The same, with the current device by its number. */
export function exactIndex(device: CudaDevice | undefined, op: string): number {
  const index = deviceIndex(device, op);
  return index < 0 ? currentDevice() : index;
}

/** Whether tensors can be put on "cuda"; whyNot() says what is missing. */
export function isAvailable(): boolean {
  return ops._cudaStatus() === 0;
}

/** The reason why CUDA cannot be used, as a sentence; null where it can. */
export function whyNot(): string | null {
  return isAvailable() ? null : readText(ops._cudaWhy());
}

/** Number of CUDA devices; 0 where CUDA cannot be used. */
export function deviceCount(): number {
  return ops._cudaDeviceCount();
}

/** Number of the device that plain "cuda" means. */
export function currentDevice(): number {
  return ops._cudaCurrentDevice();
}

/** Makes a device current for this thread; withDevice() is the scoped form. */
export function setDevice(device: CudaDevice): void {
  const index = deviceIndex(device, "setDevice");
  if (index >= 0) ops._cudaSetDevice(index);
}

/** Runs `fn` with another current device; without `fn`, a guard for `using`. */
export function withDevice(device: CudaDevice): Scope;
export function withDevice<R>(device: CudaDevice, fn: () => R): R;
export function withDevice<R>(device: CudaDevice, fn?: () => R): R | Scope {
  const index = deviceIndex(device, "withDevice");
  const before = currentDevice();
  if (index >= 0) ops._cudaSetDevice(index);
  const leave = () => ops._cudaSetDevice(before);
  return fn ? scoped("withDevice", fn, leave) : new Scope(leave);
}

/** Waits for all work that was queued on a device, and throws what its kernels reported. */
export function synchronize(device: CudaDevice = null): void {
  ops._cudaSynchronize(deviceIndex(device, "synchronize"));
}

/** What a device is; sizes in bytes. */
export interface DeviceProperties {
  name: string;
  major: number;
  minor: number;
  totalMemory: number;
  multiProcessorCount: number;
  maxThreadsPerMultiProcessor: number;
  maxThreadsPerBlock: number;
  warpSize: number;
  regsPerMultiprocessor: number;
  sharedMemoryPerBlock: number;
  sharedMemoryPerBlockOptin: number;
  sharedMemoryPerMultiprocessor: number;
  L2CacheSize: number;
  isIntegrated: boolean;
  isMultiGpuBoard: boolean;
  pciBusId: number;
  pciDeviceId: number;
  pciDomainId: number;
  uuid: string;
}

/** Name, memory, multiprocessors and limits of a device. */
export function getDeviceProperties(device: CudaDevice = null): DeviceProperties {
  return readJson(ops._cudaProperties(deviceIndex(device, "getDeviceProperties")));
}

/** For example "NVIDIA H200". */
export function getDeviceName(device: CudaDevice = null): string {
  return getDeviceProperties(device).name;
}

/** Compute capability as [major, minor]. */
export function getDeviceCapability(device: CudaDevice = null): [number, number] {
  const { major, minor } = getDeviceProperties(device);
  return [major, minor];
}

/** Whether kernels of `device` can read the memory of `peer` without the host. */
export function canDeviceAccessPeer(device: CudaDevice, peer: CudaDevice): boolean {
  const op = "canDeviceAccessPeer";
  return ops._cudaCanAccessPeer(deviceIndex(device, op), deviceIndex(peer, op));
}

/** Whether bfloat16 arithmetic is in hardware: from compute capability 8.0 on. */
export function isBf16Supported(): boolean {
  return isAvailable() && getDeviceCapability()[0] >= 8;
}
