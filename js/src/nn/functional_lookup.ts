// Finds functions of torch.nn.functional by name; one that is missing is an error when called.
import { NotImplementedError } from "../errors.js";
import * as torch from "../torch.gen.js";
import * as own from "./functional.js";
import type { Tensor } from "../tensor.js";

type Function = (...args: unknown[]) => Tensor;

const spaces = [own, torch] as unknown as Record<string, Function | undefined>[];

function find(name: string): Function {
  for (const space of spaces) if (space[name]) return space[name];
  return () => {
    throw new NotImplementedError(`nn.functional.${name}: not implemented`);
  };
}

/** The function called `name`, looked up at its first call. */
export function functional(name: string): Function {
  let found: Function | undefined;
  return (...args) => (found ??= find(name))(...args);
}
