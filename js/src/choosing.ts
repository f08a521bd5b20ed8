// Operators that choose elements and whose forms in PyTorch share one name: where, nonzero, ...
import type { Scalar } from "./dtype.js";
import { TypeError_ } from "./errors.js";
import * as ops from "./ops.gen.js";
import { Tensor } from "./tensor.js";

/** `input` where the condition holds, else `other`; alone, the coordinates of true elements. */
export function where(condition: Tensor): Tensor[];
export function where(condition: Tensor, input: Tensor | Scalar, other: Tensor | Scalar): Tensor;
export function where(
  condition: Tensor,
  input?: Tensor | Scalar,
  other?: Tensor | Scalar,
): Tensor | Tensor[] {
  if (input === undefined && other === undefined) return ops._nonzeroTuple(condition);
  if (other === undefined) throw new TypeError_('where: missing argument "other"');
  return ops._where(condition, input!, other);
}

/** Coordinates of the elements that are not 0: [n, dims], or with asTuple one tensor per dim. */
export function nonzero(input: Tensor, options?: { asTuple?: false }): Tensor;
export function nonzero(input: Tensor, options: { asTuple: true }): Tensor[];
export function nonzero(input: Tensor, options: { asTuple?: boolean } = {}): Tensor | Tensor[] {
  return options.asTuple ? ops._nonzeroTuple(input) : ops.argwhere(input);
}

declare module "./tensor.js" {
  interface Tensor {
    /** This tensor where the condition holds, else `other`. */
    where(condition: Tensor, other: Tensor | Scalar): Tensor;
    /** Coordinates of the elements that are not 0, [n, dims]. */
    nonzero(options?: { asTuple?: false }): Tensor;
    /** Coordinates of the elements that are not 0, one tensor per dim. */
    nonzero(options: { asTuple: true }): Tensor[];
  }
}

const methods: Record<string, (this: Tensor, ...args: never[]) => unknown> = {
  where(condition: Tensor, other: Tensor | Scalar) {
    return where(condition, this, other);
  },
  nonzero(options: { asTuple: true }) {
    return nonzero(this, options);
  },
};

/** Puts the methods of this file on Tensor's prototype. */
export function installChoosing(prototype: object): void {
  for (const [name, value] of Object.entries(methods)) {
    Object.defineProperty(prototype, name, { value, writable: true, configurable: true });
  }
}
