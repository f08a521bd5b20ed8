// Loading of state dicts into modules.
import { noGrad } from "../autograd.js";
import { ShapeError, TypeError_, ValueError } from "../errors.js";
import { Tensor } from "../tensor.js";
import type { AnyModule } from "./module.js";

/** Tensors by PyTorch's keys, such as "layer1.0.weight". */
export type StateDict = Record<string, Tensor>;

export interface LoadOptions {
  /** Whether missing and unexpected keys are errors (default true). */
  strict?: boolean;
}

export interface LoadResult {
  missingKeys: string[];
  unexpectedKeys: string[];
}

const quoted = (keys: string[]) => keys.map((key) => `"${key}"`).join(", ");
const size = (t: Tensor) => `torch.Size([${t.shape.join(", ")}])`;

/** Every tensor of the module's state by key; a shared one stands under each of its keys. */
function targets(module: AnyModule, path: string, out: Map<string, Tensor>): Map<string, Tensor> {
  const prefix = path === "" ? "" : `${path}.`;
  for (const [name, value] of module._ownParameters()) out.set(prefix + name, value);
  for (const [name, value] of module._ownBuffers(false)) out.set(prefix + name, value);
  for (const [name, child] of module.namedChildren()) targets(child, prefix + name, out);
  return out;
}

/** Copies `state` into the module; nothing is written when there is anything to complain about. */
export function loadInto(
  module: AnyModule,
  state: StateDict | ReadonlyMap<string, Tensor>,
  options: LoadOptions = {},
): LoadResult {
  const given = state instanceof Map ? state : new Map(Object.entries(state));
  const wanted = targets(module, "", new Map<string, Tensor>());
  const missingKeys = [...wanted.keys()].filter((key) => !given.has(key));
  const unexpectedKeys = [...given.keys()].filter((key) => !wanted.has(key));
  const faults: string[] = [];
  let shapes = false;
  if (options.strict ?? true) {
    if (unexpectedKeys.length > 0) {
      faults.push(`Unexpected key(s) in state_dict: ${quoted(unexpectedKeys)}. `);
    }
    if (missingKeys.length > 0)
      faults.push(`Missing key(s) in state_dict: ${quoted(missingKeys)}. `);
  }
  const copies: [Tensor, Tensor][] = [];
  for (const [key, target] of wanted) {
    const value: unknown = given.get(key);
    if (value === undefined) continue;
    if (!(value instanceof Tensor)) {
      throw new TypeError_(`loadStateDict: expected a Tensor for "${key}", got ${typeof value}`);
    }
    if (String(value.shape) === String(target.shape)) copies.push([target, value]);
    else {
      shapes = true;
      faults.push(
        `size mismatch for ${key}: copying a param with shape ${size(value)} from checkpoint, ` +
          `the shape in current model is ${size(target)}.`,
      );
    }
  }
  if (faults.length > 0) {
    const message =
      `loadStateDict: Error(s) in loading state_dict for ${module.constructor.name}:\n\t` +
      faults.join("\n\t");
    throw shapes ? new ShapeError(message) : new ValueError(message);
  }
  noGrad(() => {
    for (const [target, value] of copies) target.copy_(value);
  });
  return { missingKeys, unexpectedKeys };
}
