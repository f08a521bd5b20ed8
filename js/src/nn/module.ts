// nn.Module: the base class of layers and models.
import { noGrad } from "../autograd.js";
import type { DeviceLike, DType } from "../dtype.js";
import { describe, Device, float16, float32, float64, bfloat16 } from "../dtype.js";
import { NotImplementedError, TypeError_, ValueError } from "../errors.js";
import * as ops from "../ops.gen.js";
import { Tensor, type ToOptions } from "../tensor.js";
import { keep } from "../tidy.js";
import { Buffer, Parameter } from "./parameter.js";
import { loadInto, type LoadOptions, type LoadResult, type StateDict } from "./state.js";

/** A module of any arguments and result. */
export type AnyModule = Module<never, unknown>;

/** Undoes a registration. */
export interface RemovableHandle {
  remove(): void;
}

/** Runs before forward; may return other arguments. */
export type ForwardPreHook = (module: AnyModule, args: unknown[]) => unknown[] | void;
/** Runs after forward; may return another result. */
export type ForwardHook = (module: AnyModule, args: unknown[], output: unknown) => unknown;

interface HookLists {
  before: ForwardPreHook[] | null;
  after: ForwardHook[] | null;
}

/** A parameter, buffer or child of a module under its name in the state. */
type Owned<T> = readonly [name: string, value: T];

/**
 * A layer or a model. A subclass makes its parameters, buffers and children as fields and defines
 * `forward`; an instance is a function: `model(x)` runs the hooks and `forward`.
 *
 * What is assigned to a field is registered by that: a Parameter, a Buffer, another module. Private
 * (#) fields are not seen. An instance being a function, fields called `name` or `length` have to
 * be declared in the class, not first assigned in the constructor.
 */
export abstract class Module<Args extends unknown[] = [Tensor], Out = Tensor> {
  /** Whether layers such as Dropout behave as in training. */
  training!: boolean;
  /** @internal Hooks, shared with the function that is the instance. */
  _hooks!: HookLists;
  /** @internal Buffers that are plain tensors: name to whether they are persistent. */
  _buffers!: Map<string, boolean>;

  constructor() {
    const hooks: HookLists = { before: null, after: null };
    const self = ((...args: Args): Out =>
      hooks.before === null && hooks.after === null
        ? self.forward(...args)
        : callWithHooks(self, hooks, args)) as Module<Args, Out>;
    const prototype = new.target.prototype as object;
    // A getter of the class would be hidden by a function's own property.
    for (const key of ["name", "length"]) {
      if (key in prototype) delete (self as unknown as Record<string, unknown>)[key];
    }
    Object.setPrototypeOf(self, prototype);
    self.training = true;
    self._hooks = hooks;
    self._buffers = noBuffers;
    return self;
  }

  /** Computes the result; call the module itself instead, which also runs the hooks. */
  abstract forward(...args: Args): Out;

  // ---- what the module owns

  /** @internal Field names that have another name in the state. */
  get _stateNames(): Readonly<Record<string, string>> {
    return noNames;
  }
  /** @internal The fields in order of registration. */
  _fields(): Iterable<Owned<unknown>> {
    const names = this._stateNames;
    return Object.keys(this).map(
      (key) => [names[key] ?? key, (this as Record<string, unknown>)[key]] as const,
    );
  }
  /** @internal This module's own parameters. */
  _ownParameters(): Owned<Parameter>[] {
    return [...this._fields()].filter((f): f is Owned<Parameter> => f[1] instanceof Parameter);
  }
  /** @internal This module's own buffers; those that are not saved only on request. */
  _ownBuffers(all = true): Owned<Tensor>[] {
    const out: Owned<Tensor>[] = [];
    for (const [name, value] of this._fields()) {
      if (!(value instanceof Tensor) || value instanceof Parameter) continue;
      const saved = value instanceof Buffer ? value.persistent : this._buffers.get(name);
      if (saved !== undefined && (saved || all)) out.push([name, value]);
    }
    return out;
  }

  /** Direct children by name. */
  namedChildren(): [string, AnyModule][] {
    const found: [string, AnyModule][] = [];
    for (const [name, value] of this._fields()) {
      if (value instanceof Module) found.push([name, value as AnyModule]);
    }
    return found;
  }
  children(): AnyModule[] {
    return unique(this.namedChildren()).map(([, child]) => child);
  }
  /** This module ("") and all below it, each once, by path. */
  namedModules(prefix = ""): [string, AnyModule][] {
    const seen = new Set<AnyModule>();
    const out: [string, AnyModule][] = [];
    const visit = (module: AnyModule, path: string): void => {
      if (seen.has(module)) return;
      seen.add(module);
      out.push([path, module]);
      for (const [name, child] of module.namedChildren()) visit(child, join(path, name));
    };
    visit(this as AnyModule, prefix);
    return out;
  }
  modules(): AnyModule[] {
    return this.namedModules().map(([, module]) => module);
  }
  /** The module at a path such as "layer1.0.conv". */
  getSubmodule(path: string): AnyModule {
    const found = path === "" ? (this as AnyModule) : new Map(this.namedModules()).get(path);
    if (found) return found;
    throw new ValueError(`getSubmodule: ${this.constructor.name} has no module "${path}"`);
  }

  private gather<T>(own: (module: AnyModule) => Owned<T>[], prefix: string, recurse: boolean) {
    const modules = recurse ? this.namedModules(prefix) : [[prefix, this as AnyModule] as const];
    return unique(
      modules.flatMap(([path, module]) =>
        own(module).map(([name, value]): [string, T] => [join(path, name), value]),
      ),
    );
  }
  /** Parameters by path, each once; `recurse` = false leaves out those of children. */
  namedParameters(prefix = "", recurse = true): [string, Parameter][] {
    return this.gather((module) => module._ownParameters(), prefix, recurse);
  }
  parameters(recurse = true): Parameter[] {
    return this.namedParameters("", recurse).map(([, parameter]) => parameter);
  }
  /** Buffers by path, each once. */
  namedBuffers(prefix = "", recurse = true): [string, Tensor][] {
    return this.gather((module) => module._ownBuffers(), prefix, recurse);
  }
  buffers(recurse = true): Tensor[] {
    return this.namedBuffers("", recurse).map(([, buffer]) => buffer);
  }

  // ---- registration by name

  private register(what: string, name: string, value: unknown): void {
    if (typeof name !== "string" || name === "" || name.includes(".")) {
      throw new ValueError(`${what}: expected a name without dots, got ${describe(name)}`);
    }
    if (name in this && !Object.hasOwn(this, name)) {
      throw new ValueError(`${what}: ${this.constructor.name} already has a member "${name}"`);
    }
    (this as unknown as Record<string, unknown>)[name] = value;
  }
  /** Makes `tensor` a field that is part of the state without being trained. */
  registerBuffer(name: string, tensor: Tensor | null, persistent = true): void {
    this.register("registerBuffer", name, tensor);
    let held = keep(tensor);
    // What is assigned later is the module's as well: no tidy frees it.
    Object.defineProperty(this, name, {
      enumerable: true,
      configurable: true,
      get: () => held,
      set: (value: Tensor | null) => (held = keep(value)),
    });
    if (this._buffers === noBuffers) this._buffers = new Map();
    this._buffers.set(this._stateNames[name] ?? name, persistent);
  }
  registerParameter(name: string, parameter: Parameter | null): void {
    if (parameter !== null && !(parameter instanceof Parameter)) {
      throw new TypeError_(`registerParameter: expected a Parameter or null for "${name}"`);
    }
    this.register("registerParameter", name, parameter);
  }
  registerModule(name: string, module: AnyModule | null): void {
    this.register("registerModule", name, module);
  }
  addModule(name: string, module: AnyModule | null): void {
    this.register("addModule", name, module);
  }

  // ---- state

  /** Parameters and persistent buffers by path, detached, sharing memory with the module. */
  stateDict(prefix = ""): StateDict {
    const out: StateDict = {};
    const visit = (module: AnyModule, path: string): void => {
      for (const [name, value] of [...module._ownParameters(), ...module._ownBuffers(false)]) {
        out[join(path, name)] = value.detach();
      }
      for (const [name, child] of module.namedChildren()) visit(child, join(path, name));
    };
    visit(this as AnyModule, prefix.replace(/\.$/, ""));
    return out;
  }
  /**
   * Copies the values of a state dict in. Missing and unexpected keys are errors unless `strict` is
   * false; the result lists them.
   */
  loadStateDict(state: StateDict | ReadonlyMap<string, Tensor>, options?: LoadOptions): LoadResult {
    return loadInto(this as AnyModule, state, options);
  }

  // ---- modes and conversion

  train(mode = true): this {
    for (const module of this.modules()) module.training = mode;
    return this;
  }
  eval(): this {
    return this.train(false);
  }
  requiresGrad_(on = true): this {
    for (const parameter of this.parameters()) parameter.requiresGrad_(on);
    return this;
  }
  /** Drops the gradients of all parameters, or fills them with zeros. */
  zeroGrad(setToNone = true): void {
    ops._zeroGrads(this.parameters(), setToNone);
  }
  /** Calls `fn` on every module below, then on this one. */
  apply(fn: (module: AnyModule) => void): this {
    for (const child of this.children()) child.apply(fn);
    fn(this as AnyModule);
    return this;
  }
  /** Moves parameters and buffers; a dtype applies to the floating ones. Optimizers keep them. */
  to(target: DType | DeviceLike | Tensor | ToOptions): this {
    return this.convert((t) => {
      const moved = t.to(target);
      return t.isFloatingPoint() || t.isComplex() ? moved : moved.to(t.dtype);
    });
  }
  cpu(): this {
    return this.to("cpu");
  }
  /** Moves parameters and buffers to a CUDA device: the current one, a number, or "cuda:1". */
  cuda(device: DeviceLike | number = "cuda"): this {
    return this.to(typeof device === "number" ? new Device("cuda", device) : device);
  }
  float(): this {
    return this.to(float32);
  }
  double(): this {
    return this.to(float64);
  }
  half(): this {
    return this.to(float16);
  }
  bfloat16(): this {
    return this.to(bfloat16);
  }
  private convert(change: (t: Tensor) => Tensor): this {
    noGrad(() => {
      for (const t of [...this.parameters(), ...this.buffers()]) {
        const changed = change(t);
        if (changed === t) continue;
        const { grad } = t;
        t.grad = null;
        ops._setData_(t, changed);
        if (grad) t.grad = change(grad);
      }
    });
    return this;
  }

  // ---- hooks

  /** Calls `hook` with the arguments before every forward. */
  registerForwardPreHook(hook: ForwardPreHook): RemovableHandle {
    this._hooks.before = [...(this._hooks.before ?? []), hook];
    return { remove: () => (this._hooks.before = without(this._hooks.before, hook)) };
  }
  /** Calls `hook` with arguments and result after every forward. */
  registerForwardHook(hook: ForwardHook): RemovableHandle {
    this._hooks.after = [...(this._hooks.after ?? []), hook];
    return { remove: () => (this._hooks.after = without(this._hooks.after, hook)) };
  }
  registerFullBackwardHook(): RemovableHandle {
    throw new NotImplementedError("registerFullBackwardHook: not implemented; hook the tensors");
  }

  // ---- printing

  /** What toString() shows between the parentheses of this layer. */
  extraRepr(): string {
    return "";
  }
  toString(): string {
    const extra = this.extraRepr();
    const children = this._childLines();
    if (children.length === 0) return `${this.constructor.name}(${extra})`;
    const lines = [...(extra ? extra.split("\n") : []), ...children];
    return `${this.constructor.name}(\n  ${lines.join("\n  ")}\n)`;
  }
  /** @internal The lines of the children, indented below themselves. */
  _childLines(): string[] {
    return this.namedChildren().map(
      ([name, child]) => `(${name}): ${child.toString().replaceAll("\n", "\n  ")}`,
    );
  }
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }
}

export interface Module<Args extends unknown[] = [Tensor], Out = Tensor> {
  /** Runs the hooks and forward. */
  (...args: Args): Out;
}

const noNames: Readonly<Record<string, string>> = {};
const noBuffers = new Map<string, boolean>();

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function unique<T>(pairs: [string, T][]): [string, T][] {
  const seen = new Set<T>();
  return pairs.filter(([, value]) => !seen.has(value) && seen.add(value));
}

function without<T>(list: T[] | null, item: T): T[] | null {
  const rest = (list ?? []).filter((x) => x !== item);
  return rest.length > 0 ? rest : null;
}

function callWithHooks<Args extends unknown[], Out>(
  module: Module<Args, Out>,
  hooks: HookLists,
  given: Args,
): Out {
  const shown = module as AnyModule;
  let args = given;
  for (const hook of hooks.before ?? []) {
    args = (hook(shown, args) as Args | undefined) ?? args;
    if (!Array.isArray(args)) {
      throw new TypeError_("forward pre-hook: expected a list of arguments or nothing");
    }
  }
  let out = module.forward(...args);
  for (const hook of hooks.after ?? []) out = (hook(shown, args, out) as Out | undefined) ?? out;
  return out;
}
