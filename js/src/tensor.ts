// The Tensor class: what every tensor can tell and do beside the generated operators.
import "./dispose_symbol.js";
import { backward as runBackward, GradFn } from "./autograd.js";
import { backend } from "./backend.js";
import { to as castTo, type ToOptions } from "./casts.js";
import { fetchData, fetchItem } from "./cuda/async.js";
import {
  Complex,
  Device,
  dtypes,
  float32,
  type DeviceLike,
  type DType,
  type Scalar,
} from "./dtype.js";
import { ShapeError, ValueError } from "./errors.js";
import { gatherData, nested, type Nested, type TypedArray } from "./convert.js";
import { checkNames } from "./frame.js";
import * as ops from "./ops.gen.js";
import { formatTensor } from "./print_tensor.js";
import { readIndex, writeIndex, type Index } from "./indexing.js";

/** A tensor: an n-dimensional array of one dtype on one device. */
export class Tensor {
  /** Handle in the core, a whole number; -1 when disposed. Never keep it across a native call. */
  _id = -1;

  // ---- what it is

  /** Sizes of the dims. */
  get shape(): number[] {
    return ops._sizes(this);
  }
  /** Sizes of the dims, or of one. */
  size(): number[];
  size(dim: number): number;
  size(dim?: number): number | number[] {
    return dim === undefined ? this.shape : pick("size", this.shape, dim);
  }
  /** Strides in elements, or that of one dim. */
  stride(): number[];
  stride(dim: number): number;
  stride(dim?: number): number | number[] {
    const all = ops._strides(this);
    return dim === undefined ? all : pick("stride", all, dim);
  }
  get ndim(): number {
    return this.shape.length;
  }
  dim(): number {
    return this.shape.length;
  }
  /** Number of elements. */
  numel(): number {
    return this.shape.reduce((a, b) => a * b, 1);
  }
  get dtype(): DType {
    return dtypes[ops._info(this)[0]!]!;
  }
  get device(): Device {
    return Device.fromCode(ops._info(this)[1]!);
  }
  get requiresGrad(): boolean {
    return ops._info(this)[2] === 1;
  }
  set requiresGrad(on: boolean) {
    ops.requiresGrad_(this, on);
  }
  /** Whether the tensor was made by the user and not by a recorded operator. */
  get isLeaf(): boolean {
    return ops._info(this)[3] === 1;
  }
  storageOffset(): number {
    return ops._info(this)[4]!;
  }
  /** Whether the elements lie in row-major order, or in that of a memory format. */
  isContiguous(options: { memoryFormat?: number | null } = {}): boolean {
    checkNames("isContiguous", options, ["memoryFormat"]);
    return ops._isContiguous(this, options.memoryFormat ?? null);
  }
  /** All dims in reverse order. */
  get T(): Tensor {
    return ops._numpyT(this);
  }
  /** The two last dims swapped. */
  get mT(): Tensor {
    return ops._matrixT(this);
  }
  /** A matrix transposed and conjugated. */
  get H(): Tensor {
    return ops._hermitian(this);
  }
  /** The two last dims swapped, conjugated. */
  get mH(): Tensor {
    return ops.adjoint(this);
  }
  /** The real part: a view of a complex tensor, the tensor itself otherwise. */
  get real(): Tensor {
    return ops.real(this);
  }
  /** The imaginary part of a complex tensor, as a view. */
  get imag(): Tensor {
    return ops.imag(this);
  }
  /** Counts in-place writes to the storage. */
  get _version(): number {
    return ops._info(this)[6]!;
  }
  isFloatingPoint(): boolean {
    return this.dtype.isFloatingPoint;
  }
  isComplex(): boolean {
    return this.dtype.isComplex;
  }
  elementSize(): number {
    return this.dtype.itemsize;
  }
  /** Length of the first dim. */
  get length(): number {
    const shape = this.shape;
    if (shape.length === 0) throw new ShapeError("length: a 0-d tensor has no length");
    return shape[0]!;
  }

  // ---- autograd

  /** The accumulated gradient, or null. */
  get grad(): Tensor | null {
    return ops._getGrad(this);
  }
  set grad(value: Tensor | null) {
    ops._setGrad(this, value);
  }
  /** The recorded operator that made this tensor, or null for a leaf. */
  get gradFn(): GradFn | null {
    return this.isLeaf ? null : GradFn.of(this);
  }
  /** Accumulates gradients of this tensor into the leaves it was computed from. */
  backward(gradient?: Tensor | null | BackwardOptions, options: BackwardOptions = {}): void {
    const given = gradient instanceof Tensor ? gradient : (gradient?.gradient ?? null);
    const named = gradient instanceof Tensor || !gradient ? options : gradient;
    runBackward(this, given, named);
  }

  // ---- values

  /** The value of a one-element tensor; a bigint where a number would not be exact. */
  item(): number | bigint | boolean | Complex {
    return ops._item(this);
  }
  /** The values in row-major order, copied. Half types come as float32, complex as pairs. */
  data(): TypedArray {
    return gatherData(this);
  }
  /** As data(), without blocking the event loop where work is still running. */
  dataAsync(): Promise<TypedArray> {
    return fetchData(this);
  }
  /** As item(), without blocking the event loop where work is still running. */
  itemAsync(): Promise<number | bigint | boolean | Complex> {
    return fetchItem(this);
  }
  /** The values as nested arrays; a plain number for a 0-d tensor. */
  tolist(): Nested {
    return nested(this);
  }
  toString(): string {
    return formatTensor(this);
  }
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return formatTensor(this);
  }
  valueOf(): number | bigint | boolean | Complex | Tensor {
    return this;
  }
  *[Symbol.iterator](): Iterator<Tensor> {
    const n = this.length;
    for (let i = 0; i < n; i++) yield ops.select(this, 0, i);
  }

  // ---- conversion

  /**
   * The tensor with another dtype, device or memory format; itself when nothing changes:
   * `x.to(torch.float64)`, `x.to("meta")`, `x.to(other)`, `x.to({ dtype, device })`.
   */
  to(
    target: DType | DeviceLike | Tensor | ToOptions | null,
    ...rest: (DType | boolean | ToOptions)[]
  ): Tensor {
    return castTo(this, [target, ...rest]);
  }
  cpu(): Tensor {
    return this.to("cpu");
  }
  /** The tensor on a CUDA device: the current one, a number, or "cuda:1". */
  cuda(device: DeviceLike | number = "cuda"): Tensor {
    return this.to(typeof device === "number" ? new Device("cuda", device) : device);
  }
  get isCuda(): boolean {
    return this.device.type === "cuda";
  }

  // ---- indexing

  /**
   * Reads by PyTorch's indexing: integers, ":" or "1:5:2" or torch.slice(), null (a new dim),
   * "...", lists of integers, integer and bool tensors.
   */
  index(...index: Index[]): Tensor {
    return readIndex(this, index);
  }
  /** Writes `value` (a tensor or a number) where index(...) would read. */
  indexPut_(
    index: readonly Index[],
    value: Tensor | Scalar,
    accumulate: boolean | { accumulate?: boolean } = false,
  ): this {
    if (typeof accumulate !== "boolean") checkNames("indexPut_", accumulate, ["accumulate"]);
    const add = typeof accumulate === "boolean" ? accumulate : (accumulate.accumulate ?? false);
    writeIndex(this, index, value, add);
    return this;
  }

  // ---- memory

  /**
   * Frees the memory now instead of at the next collection, unless a view or a graph uses it.
   * Harmless when repeated. With `using t = ...` the end of the block does it.
   */
  dispose(): void {
    if (this._id < 0) return;
    backend.free(this._id);
    this._id = -1;
  }
  [Symbol.dispose](): void {
    this.dispose();
  }
  /** Whether the tensor has been freed, by dispose() or by the end of its tidy. */
  get isDisposed(): boolean {
    return this._id < 0 || backend.scopeOf(this._id) < 0;
  }
}

export interface Tensor extends ops.TensorMethods {}

export type { ToOptions };

export interface BackwardOptions {
  gradient?: Tensor | null;
  retainGraph?: boolean;
  createGraph?: boolean;
  inputs?: Tensor | readonly Tensor[];
}

function pick(op: string, list: number[], dim: number): number {
  const value = Number.isInteger(dim) ? list.at(dim) : undefined;
  if (value === undefined) {
    throw new ValueError(
      `${op}: expected dim in [${-list.length}, ${list.length - 1}], got ${dim}`,
    );
  }
  return value;
}

/** The dtype that printing leaves out. */
export const printedDefault = float32;
