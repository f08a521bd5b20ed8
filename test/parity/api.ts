// Cresset as the parity runner sees it: looked up by name, because the cases name what to call.
import * as cresset from "../../js/src/index.js";

export type TypedArray =
  Float64Array | Float32Array | BigInt64Array | Int32Array | Int16Array | Int8Array | Uint8Array;

type Method = (...args: unknown[]) => unknown;

/** What the runner uses of a tensor by name; everything else it reaches with `method`. */
export interface TensorLike {
  readonly shape: readonly number[];
  readonly dtype: unknown;
  readonly requiresGrad: boolean;
  data(): TypedArray;
  stride(): readonly number[];
}

/** Something that a case needs and that Cresset does not have. */
export class Missing extends Error {}

const api = cresset as unknown as Record<string, unknown>;

/** The value at a dotted path below `torch`, or undefined. */
export function lookUp(path: string): unknown {
  let value: unknown = api;
  for (const name of path.split(".")) {
    if (value === undefined || value === null) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

/** The function at a dotted path below `torch`; throws `Missing` where there is none. */
export function fn(path: string): Method {
  const value = lookUp(path);
  if (typeof value !== "function") throw new Missing(`torch.${path} does not exist`);
  return value as Method;
}

/** Calls a method of an object; throws `Missing` where there is none. */
export function method(self: unknown, name: string, ...args: unknown[]): unknown {
  const value = (self as Record<string, unknown>)[name];
  if (typeof value !== "function") throw new Missing(`Tensor.${name} does not exist`);
  return (value as Method).apply(self, args);
}

/** Makes `new torch.<path>(...args)`; throws `Missing` where there is no such class. */
export function construct(path: string, args: unknown[]): unknown {
  const value = lookUp(path);
  if (typeof value !== "function") throw new Missing(`torch.${path} does not exist`);
  return new (value as new (...args: unknown[]) => unknown)(...args);
}

export function isTensor(value: unknown): value is TensorLike {
  return value instanceof (api["Tensor"] as new () => object);
}

/** The name of an element type: `torch.float32` gives "float32". */
export function dtypeName(dtype: unknown): string {
  return String(dtype).replace(/^torch\./, "");
}

/** Whether an error says that Cresset lacks something, as opposed to doing it wrong. */
export function saysMissing(error: unknown): boolean {
  return error instanceof Missing || error instanceof cresset.NotImplementedError;
}

/** Whether an error is one that Cresset throws on purpose. */
export function isTyped(error: unknown): boolean {
  return error instanceof cresset.CressetError;
}

/** `avg_pool2d` becomes `avgPool2d`; capitals, single letters and the outer underscores stay. */
export function camelCase(name: string): string {
  if (/^[A-Z]/.test(name)) return name;
  return name.replace(/(?<=[A-Za-z0-9])_([A-Za-z0-9])/g, (_, letter: string) =>
    letter.toUpperCase(),
  );
}
