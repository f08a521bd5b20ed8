// torch.cuda: devices, streams, memory, graphs and generators of CUDA.
export {
  canDeviceAccessPeer,
  currentDevice,
  deviceCount,
  getDeviceCapability,
  getDeviceName,
  getDeviceProperties,
  isAvailable,
  isBf16Supported,
  setDevice,
  synchronize,
  whyNot,
  withDevice,
} from "./device.js";
export type { CudaDevice, DeviceProperties } from "./device.js";
export {
  currentStream,
  defaultStream,
  Event,
  setStream,
  Stream,
  stream,
  withStream,
} from "./streams.js";
export type { EventOptions, StreamOptions } from "./streams.js";
export {
  changeCurrentAllocator,
  CUDAPluggableAllocator,
  emptyCache,
  getAllocatorBackend,
  maxMemoryAllocated,
  maxMemoryReserved,
  memGetInfo,
  memoryAllocated,
  memoryReserved,
  memorySnapshot,
  memoryStats,
  memorySummary,
  MemPool,
  resetAccumulatedMemoryStats,
  resetPeakMemoryStats,
  setAllocatorOptions,
  setPerProcessMemoryFraction,
  useMemPool,
} from "./memory.js";
export type { MemoryBlock, MemorySegment, MemoryStats } from "./memory.js";
export { CUDAGraph, graph, isCurrentStreamCapturing, makeGraphedCallables } from "./graphs.js";
export type { Graphable, GraphedOptions, GraphOptions, GraphPool } from "./graphs.js";
export {
  getRngState,
  getRngStateAll,
  initialSeed,
  manualSeed,
  manualSeedAll,
  seed,
  seedAll,
  setRngState,
  setRngStateAll,
} from "./random.js";
export { getSyncDebugMode, setLaunchBlocking, setSyncDebugMode } from "./debug.js";
