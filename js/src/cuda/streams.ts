// Streams, the queues of work of a device, and events, the marks in them.
import { Device } from "../dtype.js";
import { DeviceError } from "../errors.js";
import * as ops from "../ops.gen.js";
import { Tensor } from "../tensor.js";
import { scoped, Scope, until } from "./common.js";
import { exactIndex, type CudaDevice } from "./device.js";

export interface StreamOptions {
  device?: CudaDevice;
  /** 0, or negative for work that goes first. */
  priority?: number;
}

/**
 * A queue of work on one device. Work of different streams may run at the same time; what one
 * stream makes and another uses needs waitStream() or an event, and recordStream() on the tensor.
 */
export class Stream {
  readonly device: Device;
  /** The stream's address in CUDA; 0 is the default stream. */
  readonly cudaStream: number;

  constructor(options: StreamOptions = {}) {
    const index = exactIndex(options.device, "Stream");
    this.device = new Device("cuda", index);
    this.cudaStream = ops._cudaStream(index, options.priority ?? 0);
  }

  /** The stream of an address. */
  static of(index: number, cudaStream: number): Stream {
    return Object.assign(Object.create(Stream.prototype) as Stream, {
      device: new Device("cuda", index),
      cudaStream,
    });
  }

  private get index(): number {
    return this.device.index ?? 0;
  }
  /** Whether all work queued so far is done. */
  query(): boolean {
    return ops._cudaStreamDone(this.index, this.cudaStream);
  }
  /** Blocks until all work queued so far is done. */
  synchronize(): void {
    ops._cudaStreamSynchronize(this.index, this.cudaStream);
  }
  /** As synchronize(), while the event loop runs on. */
  async synchronizeAsync(): Promise<void> {
    await this.recordEvent().synchronizeAsync();
  }
  /** Later work of this stream waits for what the other one has queued so far. */
  waitStream(other: Stream): void {
    const event = other.recordEvent();
    this.waitEvent(event);
    event.dispose();
  }
  /** Later work of this stream waits for the event. */
  waitEvent(event: Event): void {
    ops._cudaEventWait(event._id, this.index, this.cudaStream);
  }
  /** Puts an event, a new one by default, behind the work queued so far. */
  recordEvent(event: Event = new Event()): Event {
    ops._cudaEventRecord(event._id, this.index, this.cudaStream);
    return event;
  }
  equals(other: Stream): boolean {
    return this.index === other.index && this.cudaStream === other.cudaStream;
  }
  toString(): string {
    return `Stream(${String(this.device)}, 0x${this.cudaStream.toString(16)})`;
  }
}

const registry = new FinalizationRegistry<number>((id) => ops._cudaEventDestroy(id));

export interface EventOptions {
  /** Needed for elapsedTime(). */
  enableTiming?: boolean;
}

/** A mark in a stream: passed when the work before it is done. */
export class Event {
  /** Number of the event in the core. */
  readonly _id: number;

  constructor(options: EventOptions = {}) {
    this._id = ops._cudaEventCreate(options.enableTiming ?? false);
    registry.register(this, this._id, this);
  }
  /** Puts the event behind the work of a stream, by default the current one. */
  record(stream: Stream = currentStream()): void {
    stream.recordEvent(this);
  }
  /** Lets a stream, by default the current one, wait for the event. */
  wait(stream: Stream = currentStream()): void {
    stream.waitEvent(this);
  }
  /** Whether the event has passed. */
  query(): boolean {
    return ops._cudaEventDone(this._id);
  }
  /** Blocks until the event has passed. */
  synchronize(): void {
    ops._cudaEventSynchronize(this._id);
  }
  /** As synchronize(), while the event loop runs on. */
  async synchronizeAsync(): Promise<void> {
    await until(() => this.query());
  }
  /** Milliseconds from this event to another; both with `enableTiming`, and passed. */
  elapsedTime(end: Event): number {
    return ops._cudaEventElapsed(this._id, end._id);
  }
  /** Frees the event now; using it afterwards is an error. */
  dispose(): void {
    registry.unregister(this);
    ops._cudaEventDestroy(this._id);
  }
  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** The stream that this thread's work for a device goes to. */
export function currentStream(device: CudaDevice = null): Stream {
  const index = exactIndex(device, "currentStream");
  return Stream.of(index, ops._cudaCurrentStream(index));
}

/** The stream in which work goes unless another is chosen. */
export function defaultStream(device: CudaDevice = null): Stream {
  const index = exactIndex(device, "defaultStream");
  ops._cudaCurrentStream(index); // refuses a device that is not there
  return Stream.of(index, 0);
}

/** Work for the stream's device goes to the stream from now on; withStream() is the scoped form. */
export function setStream(stream: Stream): void {
  ops._cudaSetStream(stream.device.index ?? 0, stream.cudaStream);
}

/**
 * Runs `fn` with a stream, and its device, current; without `fn`, a guard for `using`. Nothing
 * happens for null.
 */
export function withStream(stream: Stream | null): Scope;
export function withStream<R>(stream: Stream | null, fn: () => R): R;
export function withStream<R>(stream: Stream | null, fn?: () => R): R | Scope {
  let leave = (): void => {};
  if (stream) {
    const device = ops._cudaCurrentDevice();
    const before = currentStream(stream.device);
    ops._cudaSetDevice(stream.device.index ?? 0);
    setStream(stream);
    leave = () => {
      setStream(before);
      ops._cudaSetDevice(device);
    };
  }
  return fn ? scoped("withStream", fn, leave) : new Scope(leave);
}

/** PyTorch's name of withStream(). */
export const stream = withStream;

/** Methods of tensors that are about streams. */
export const streamMethods = {
  recordStream(this: Tensor, used: Stream): void {
    if (!this.isCuda || this.device.index !== used.device.index) {
      const [want, got] = [String(this.device), String(used.device)];
      throw new DeviceError(`recordStream: expected a stream of ${want}, got one of ${got}`);
    }
    ops._cudaRecordStream(this, used.cudaStream);
  },
};

declare module "../tensor.js" {
  interface Tensor {
    /**
     * Tells that a stream other than the one current at its making uses the tensor's memory: it is
     * not reused before that stream's work so far is done.
     */
    recordStream(used: Stream): void;
  }
}
