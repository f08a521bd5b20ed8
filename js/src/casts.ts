// Casts: x.to(...), and one method per dtype such as x.float().
import * as dt from "./dtype.js";
import { Device, DType, type DeviceLike } from "./dtype.js";
import { TypeError_ } from "./errors.js";
import { checkNames, isOptions } from "./frame.js";
import * as ops from "./ops.gen.js";
import { Tensor } from "./tensor.js";

/** What to() may change; memoryFormat is one of torch.channelsLast and its kin. */
export interface ToOptions {
  dtype?: DType | null;
  device?: DeviceLike | null;
  copy?: boolean;
  /** Between pinned memory and a GPU: returns before the copy is done. */
  nonBlocking?: boolean;
  memoryFormat?: number | null;
}

const names = ["dtype", "device", "copy", "nonBlocking", "memoryFormat"] as const;

// to(device, dtype, nonBlocking, copy), to(dtype, nonBlocking, copy), to(other, nonBlocking, copy).
function toOptions(args: readonly unknown[]): ToOptions {
  const last = args.at(-1);
  const named = isOptions(last) ? last : {};
  checkNames("to", named, names);
  const list = isOptions(last) ? args.slice(0, -1) : args;
  const out: ToOptions = { ...named };
  const [target] = list;
  let flags = list.slice(1);
  if (target instanceof Tensor) {
    out.dtype = target.dtype;
    out.device = target.device;
  } else if (target instanceof DType) {
    out.dtype = target;
  } else if (typeof target === "string" || target instanceof Device) {
    out.device = target;
    if (list[1] instanceof DType) {
      out.dtype = list[1];
      flags = list.slice(2);
    }
  } else if (target !== undefined && target !== null) {
    throw new TypeError_(`to: expected a dtype, a device or a Tensor, got ${dt.describe(target)}`);
  } else if (!isOptions(last)) {
    throw new TypeError_("to: missing argument");
  }
  if (flags.length > 2) throw new TypeError_("to: too many arguments");
  if (flags[0] !== undefined) out.nonBlocking = flags[0] as boolean;
  if (flags[1] !== undefined) out.copy = flags[1] as boolean;
  return out;
}

// Plain "cuda" may turn out to be where the tensor is already: then it is itself.
function moved(t: Tensor, device: Device, nonBlocking: boolean): Tensor {
  const there = ops._toDevice(t, device, nonBlocking);
  if (device.index !== null || !t.isCuda || !ops._sameTensor(t, there)) return there;
  there.dispose();
  return t;
}

/** The tensor with another dtype, device or memory format; itself when nothing changes. */
export function to(self: Tensor, args: readonly unknown[]): Tensor {
  const o = toOptions(args);
  let t = self;
  const device = o.device == null ? null : dt.device(o.device);
  if (device && device.code !== t.device.code) t = moved(t, device, o.nonBlocking ?? false);
  const format = o.memoryFormat ?? null;
  const dtype = o.dtype ?? null;
  const sameDType = dtype === null || dtype === t.dtype;
  const sameFormat = format === null || ops._isContiguous(t, format);
  if (sameDType && sameFormat && !(o.copy && t === self)) return t;
  return ops._to(t, dtype, o.copy ?? false, format);
}

interface CastOptions {
  memoryFormat?: number | null;
}

const targets = {
  bool: dt.bool,
  byte: dt.uint8,
  char: dt.int8,
  short: dt.int16,
  int: dt.int32,
  long: dt.int64,
  half: dt.float16,
  bfloat16: dt.bfloat16,
  float: dt.float32,
  double: dt.float64,
  cfloat: dt.complex64,
  cdouble: dt.complex128,
} as const;

type Cast = (this: Tensor, options?: CastOptions) => Tensor;

/** x.float(), x.long() and so on, each as x.to(dtype). */
export const castMethods = Object.fromEntries(
  Object.entries(targets).map(([name, dtype]) => [
    name,
    function (this: Tensor, options: CastOptions = {}): Tensor {
      checkNames(name, options, ["memoryFormat"]);
      return to(this, [{ dtype, memoryFormat: options.memoryFormat ?? null }]);
    },
  ]),
) as Record<keyof typeof targets, Cast>;

declare module "./tensor.js" {
  interface Tensor {
    /** As bool: whether the values differ from 0. */
    bool(options?: CastOptions): Tensor;
    /** As uint8. */
    byte(options?: CastOptions): Tensor;
    /** As int8. */
    char(options?: CastOptions): Tensor;
    /** As int16. */
    short(options?: CastOptions): Tensor;
    /** As int32. */
    int(options?: CastOptions): Tensor;
    /** As int64. */
    long(options?: CastOptions): Tensor;
    /** As float16. */
    half(options?: CastOptions): Tensor;
    /** As bfloat16. */
    bfloat16(options?: CastOptions): Tensor;
    /** As float32. */
    float(options?: CastOptions): Tensor;
    /** As float64. */
    double(options?: CastOptions): Tensor;
    /** As complex64. */
    cfloat(options?: CastOptions): Tensor;
    /** As complex128. */
    cdouble(options?: CastOptions): Tensor;
  }
}
