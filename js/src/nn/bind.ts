// Arguments of layer constructors, by position and by name, and Python's spelling of values.
import { describe, FloatScalar, type DeviceLike, type DType } from "../dtype.js";
import { TypeError_, ValueError } from "../errors.js";
import { float, int, isOptions } from "../frame.js";

/**
 * The arguments of a constructor: required ones by position, then optional ones by position; the
 * object of named arguments may stand in the place of any optional one.
 */
export type Init<Required extends unknown[], Optional extends unknown[], Options> = [
  ...required: Required,
  ...optional: { [K in keyof Optional]?: Optional[K] | Options },
  options?: Options,
];

/** Where and in which dtype a layer makes its parameters. */
export interface Factory {
  device?: DeviceLike | null;
  dtype?: DType | null;
}

/** The defaults of Factory, last in every constructor that makes parameters. */
export const factory: { device: DeviceLike | null; dtype: DType | null } = {
  device: null,
  dtype: null,
};

/** Factory as the creation operators take it. */
export function placed(o: Factory): { device?: DeviceLike; dtype?: DType } {
  return {
    ...(o.device == null ? {} : { device: o.device }),
    ...(o.dtype == null ? {} : { dtype: o.dtype }),
  };
}

// asFloat(2) is 2 to a layer.
function plain(value: unknown): unknown {
  if (value instanceof FloatScalar) return value.value;
  return Array.isArray(value) ? value.map(plain) : value;
}

/**
 * Names the arguments of a constructor. `defaults` holds the optional ones in PyTorch's order;
 * an argument that is missing, unknown or given twice is a TypeError.
 */
export function bind<T extends object>(
  name: string,
  args: readonly unknown[],
  required: readonly string[],
  defaults: object,
): T {
  const order = [...required, ...Object.keys(defaults)];
  const last = args.at(-1);
  const named = isOptions(last) ? last : {};
  const positional = isOptions(last) ? args.slice(0, -1) : args;
  if (positional.length > order.length) {
    const most = order.length;
    throw new TypeError_(`${name}: expected at most ${most} arguments, got ${positional.length}`);
  }
  const out: Record<string, unknown> = { ...defaults };
  positional.forEach((value, i) => {
    if (value !== undefined) out[order[i]!] = plain(value);
  });
  for (const [key, value] of Object.entries(named)) {
    const at = order.indexOf(key);
    if (at < 0) {
      throw new TypeError_(
        `${name}: unexpected argument "${key}"; expected one of ${order.join(", ")}`,
      );
    }
    if (at < positional.length) throw new TypeError_(`${name}: argument "${key}" is given twice`);
    if (value !== undefined) out[key] = plain(value);
  }
  const missing = required.find((key) => out[key] === undefined);
  if (missing !== undefined) throw new TypeError_(`${name}: missing argument "${missing}"`);
  return out as T;
}

type Read = (x: unknown, op: string, name: string) => number;

function repeated(x: unknown, n: number, op: string, name: string, read: Read): number[] {
  const list = Array.isArray(x) || (ArrayBuffer.isView(x) && !(x instanceof DataView));
  if (list) return Array.from(x as ArrayLike<unknown>, (item) => read(item, op, name));
  return Array<number>(n).fill(read(x, op, name));
}

/** One integer or a list of n, as a list of n. */
export function tuple(x: unknown, n: number, op: string, name: string): number[] {
  return repeated(x, n, op, name, int);
}

/** One number or a list of n, as a list of n. */
export function floatTuple(x: unknown, n: number, op: string, name: string): number[] {
  return repeated(x, n, op, name, float);
}

/** The members of something iterable. */
export function items<T>(x: Iterable<T>, op: string, name: string): T[] {
  const given = x as Partial<Iterable<T>> | null | undefined;
  if (typeof given?.[Symbol.iterator] === "function") return [...x];
  throw new TypeError_(`${op}: expected a list for "${name}", got ${describe(x)}`);
}

const mostLayers = 10000;

/** A number of layers, which are all made at once. */
export function layerCount(x: unknown, least: number, op: string, name: string): number {
  const n = int(x, op, name);
  if (n >= least && n <= mostLayers) return n;
  throw new ValueError(`${op}: expected ${name} in [${least}, ${mostLayers}], got ${n}`);
}

/** A float as Python's repr writes it. */
export function pyFloat(x: number): string {
  if (typeof x !== "number") return py(x);
  if (Number.isInteger(x) && Math.abs(x) < 1e16) return x.toFixed(1);
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-4 || size >= 1e16)) {
    return x.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
  }
  return String(x);
}

/** A value as Python's repr writes it. */
export function py(x: unknown): string {
  if (x === null || x === undefined) return "None";
  if (typeof x === "boolean") return x ? "True" : "False";
  if (typeof x === "string") return `'${x}'`;
  if (typeof x === "number") return Number.isInteger(x) ? String(x) : pyFloat(x);
  if (Array.isArray(x)) return x.length === 1 ? `(${py(x[0])},)` : `(${x.map(py).join(", ")})`;
  return String(x);
}
