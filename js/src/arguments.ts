// Arguments of functions that stand before several operators: by position, then by name in one
// trailing object.
import { checkCount, checkNames, isOptions } from "./frame.js";

/** The arguments called `names`, in this order; what is left out or undefined is missing. */
export function named(
  op: string,
  names: readonly string[],
  args: readonly unknown[],
): Record<string, unknown> {
  const last = args.at(-1);
  const options = isOptions(last) ? last : {};
  const positional = isOptions(last) ? args.slice(0, -1) : args;
  checkNames(op, options, names);
  checkCount(op, positional.length, names.length);
  const out: Record<string, unknown> = { ...options };
  positional.forEach((value, i) => {
    if (value !== undefined) out[names[i]!] = value;
  });
  return out;
}

/** Gives a prototype methods that do not show when its properties are listed. */
export function install(prototype: object, methods: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(methods)) {
    Object.defineProperty(prototype, name, { value, writable: true, configurable: true });
  }
}
