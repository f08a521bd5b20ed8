// torch.tidy, keep and dispose: memory that is freed at a known time.
import { backend } from "./backend.js";
import { ValueError } from "./errors.js";
import { f, need } from "./frame.js";
import { Tensor } from "./tensor.js";

let depth = 0;

/** @internal Whether a tidy is running. */
export const inTidy = (): boolean => depth > 0;

/**
 * Runs `fn` and frees every tensor that was made in it, except those that it returns (alone or
 * nested in arrays, objects, Maps, Sets, modules) and those given to {@link keep}. Parameters,
 * buffers, gradients and the state of optimizers stay. Tidies nest: what an inner one returns
 * belongs to the outer one. When `fn` throws, everything it made is freed.
 *
 * A tensor that was stored elsewhere is freed all the same: using it is a ValueError, never a wrong
 * value. `fn` must not be async: other code would run, and make tensors, before it ends.
 *
 * Not needed in Node, where memory is bounded anyway; in a browser, use one per training step.
 */
export function tidy<R>(fn: () => R): R {
  if (Object.prototype.toString.call(fn) === "[object AsyncFunction]") refuse("got an async one");
  const mine = (depth = backend.beginScope());
  let result: R;
  let survivors: Tensor[];
  try {
    result = fn();
    survivors = tensorsIn(result);
  } catch (error) {
    end(mine, []);
    throw error;
  }
  if (isPromise(result)) {
    freeAfter(result, mine);
    refuse("its function returned a promise");
  }
  end(mine, survivors);
  return result;
}

/**
 * Takes the tensors in `value` (a tensor, or anything that {@link tidy} may return) out of every
 * running tidy; they live until they are disposed or unreachable. Returns `value`.
 */
export function keep<T>(value: T): T {
  if (value instanceof Tensor && value.isDisposed) {
    throw new ValueError("keep: the tensor has been freed already");
  }
  if (depth > 0) keepAll(tensorsIn(value));
  return value;
}

/** Frees the tensors in each of `values` now; harmless when repeated. */
export function dispose(...values: unknown[]): void {
  for (const t of tensorsIn(values)) t.dispose();
}

/** @internal Keeps these tensors; to be called only in a tidy. */
export function keepAll(tensors: readonly Tensor[]): void {
  list(tensors);
  backend.keep();
  adoptListed(tensors);
}

function end(scope: number, survivors: readonly Tensor[]): void {
  list(survivors);
  backend.endScope(scope);
  depth = scope - 1;
  adoptListed(survivors);
}

function list(tensors: readonly Tensor[]): void {
  need(0, tensors.length + 1);
  f[0] = tensors.length;
  tensors.forEach((t, i) => (f[i + 1] = t._id));
}

// The core leaves the ids of those that changed their scope.
function adoptListed(tensors: readonly Tensor[]): void {
  tensors.forEach((t, i) => {
    if (f[i + 1]! >= 0) backend.adopt(t._id, t);
  });
}

function refuse(what: string): never {
  throw new ValueError(
    `tidy: expected a synchronous function, ${what}; other code would run before it ends. ` +
      "Await first and put only the synchronous part inside tidy, or dispose() tensors by hand",
  );
}

function isPromise(x: unknown): x is PromiseLike<unknown> {
  return x instanceof Promise || typeof (x as { then?: unknown } | null)?.then === "function";
}

// The function behind the promise still uses what it made so far: that goes when it is done.
function freeAfter(promise: PromiseLike<unknown>, scope: number): void {
  const ids = backend.scopeIds(scope);
  need(0, ids.length + 1);
  f[0] = ids.length;
  f.set(ids, 1);
  backend.keep();
  end(scope, []);
  const free = () => ids.forEach((id) => backend.free(id));
  Promise.resolve(promise).then(free, free);
}

const noTensors: Tensor[] = [];

function isContainer(x: unknown): x is object {
  const type = typeof x;
  return (type === "object" && x !== null && !ArrayBuffer.isView(x)) || type === "function";
}

function membersOf(x: object): Iterable<unknown> {
  if (Array.isArray(x) || x instanceof Set) return x as Iterable<unknown>;
  if (x instanceof Map) return [...x.keys(), ...x.values(), ...Object.values(x)];
  return Object.values(x);
}

/** Every tensor in `root`, once: itself, or what its enumerable members lead to. */
function tensorsIn(root: unknown): Tensor[] {
  if (root instanceof Tensor) return [root];
  if (!isContainer(root)) return noTensors;
  const seen = new Set<object>([root]);
  const found: Tensor[] = [];
  const open: object[] = [root];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const value of membersOf(next)) {
      if (!isContainer(value) || seen.has(value)) continue;
      seen.add(value);
      if (value instanceof Tensor) found.push(value);
      else open.push(value);
    }
  }
  return found;
}
