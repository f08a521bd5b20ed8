// optim.Optimizer: parameter groups, state and its saving, shared by all optimizers.
import { enableGrad, noGrad } from "../autograd.js";
import { backend } from "../backend.js";
import { describe, FloatScalar } from "../dtype.js";
import { ShapeError, TypeError_, ValueError } from "../errors.js";
import * as ops from "../ops.gen.js";
import { Tensor } from "../tensor.js";
import { inTidy, keepAll } from "../tidy.js";
import { checkNames, float, isOptions } from "../frame.js";
import { items, py } from "../nn/bind.js";

/** Parameters, or groups of them with their own options. */
export type Params<Group extends object> =
  Iterable<Tensor> | Iterable<Partial<Group> & { params: Iterable<Tensor> | Tensor }>;

/** A group: its parameters and the options that hold for them. */
export type ParamGroup<Options extends object> = Options & { params: Tensor[] };

/** What an optimizer remembers about one parameter, by PyTorch's names. */
export type ParamState = Record<string, unknown>;

/** The state of an optimizer as PyTorch lays it out: parameters by their number. */
export interface OptimizerState {
  state: Record<number, ParamState>;
  param_groups: (Record<string, unknown> & { params: number[] })[];
}

/** Computes the loss again, with gradients; some optimizers call it several times. */
export type Closure = () => Tensor;

/** PyTorch's spelling of an option, and back. */
export const snakeCase = (key: string) =>
  key.replace(/(?<=[a-z0-9])[A-Z]/g, (c) => `_${c.toLowerCase()}`);
export const camelCase = (key: string) =>
  key.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_, c: string) => c.toUpperCase());

const plain = (x: unknown): unknown =>
  x instanceof FloatScalar ? x.value : Array.isArray(x) ? x.map(plain) : x;

/** Changes parameters by their gradients. Subclasses define `update`. */
export abstract class Optimizer<Options extends object = Record<string, unknown>> {
  paramGroups: ParamGroup<Options>[] = [];
  /** What is remembered about each parameter; empty until its first step. */
  state = new Map<Tensor, ParamState>();
  readonly defaults: Options;
  /** The defaults before options were given. */
  private readonly _usual: Options;

  constructor(params: Params<Options>, defaults: Options, given: object = {}) {
    const { name } = this.constructor;
    if (!isOptions(given)) {
      throw new TypeError_(`${name}: expected an object of options, got ${describe(given)}`);
    }
    checkNames(name, given, Object.keys(defaults));
    this._usual = defaults;
    this.defaults = { ...defaults };
    for (const [key, value] of Object.entries(given)) {
      if (value !== undefined) (this.defaults as Record<string, unknown>)[key] = plain(value);
    }
    if (params instanceof Tensor) {
      throw new TypeError_(`${name}: expected a list of parameters or groups, got a Tensor`);
    }
    const list: unknown[] = items<unknown>(params, name, "params");
    if (list.length === 0) throw new ValueError(`${name}: got an empty list of parameters`);
    const groups = isOptions(list[0]) ? list : [{ params: list }];
    for (const group of groups) this.addParamGroup(group as never);
  }

  /** Adds a group; options that it does not name are the optimizer's defaults. */
  addParamGroup(group: Partial<Options> & { params: Iterable<Tensor> | Tensor }): void {
    const { name } = this.constructor;
    if (!isOptions(group)) {
      throw new TypeError_(`${name}: expected a group of parameters, got ${describe(group)}`);
    }
    const given = group.params as Iterable<Tensor>;
    const params = given instanceof Tensor ? [given] : items(given, name, "params");
    const known = new Set(this.paramGroups.flatMap((g) => g.params));
    for (const p of params) {
      if (!(p instanceof Tensor)) {
        throw new TypeError_(`${name}: expected Tensors as parameters, got ${describe(p)}`);
      }
      if (!p.isLeaf) throw new ValueError(`${name}: only leaf tensors can be optimized`);
      if (known.has(p)) {
        throw new ValueError(`${name}: a parameter appears in more than one place of the groups`);
      }
      known.add(p);
    }
    const full: Record<string, unknown> = { ...this.defaults, params };
    for (const [key, value] of Object.entries(group)) {
      if (key !== "params" && value !== undefined) full[key] = plain(value);
    }
    this.checkNumbers(full);
    this.check(full as Options);
    this.paramGroups.push(full as ParamGroup<Options>);
  }
  /** Options that are numbers or lists of numbers by default have to be such. */
  private checkNumbers(options: Record<string, unknown>): void {
    const { name } = this.constructor;
    for (const [key, usual] of Object.entries(this._usual)) {
      if (typeof usual === "number") options[key] = float(options[key], name, key);
      if (!Array.isArray(usual)) continue;
      const list = options[key];
      if (!Array.isArray(list) || list.length !== usual.length) {
        const what = `${usual.length} numbers for "${key}"`;
        throw new TypeError_(`${name}: expected ${what}, got ${describe(list)}`);
      }
      options[key] = list.map((x: unknown, i) =>
        usual[i] === null && x === null ? null : float(x, name, key),
      );
    }
  }

  /** Refuses options that make no sense. */
  protected check(options: Options): void {
    void options;
  }
  protected require(ok: boolean, what: string, value: unknown): void {
    if (ok) return;
    throw new ValueError(`${this.constructor.name}: expected ${what}, got ${String(value)}`);
  }

  /** Drops all gradients, or fills them with zeros. */
  zeroGrad(setToNone = true): void {
    for (const group of this.paramGroups) ops._zeroGrads(group.params, setToNone);
  }

  /** One update of all parameters that have a gradient. Gradients stay as they are. */
  step(): null;
  step(closure: Closure): Tensor;
  step(closure?: Closure): Tensor | null {
    this.checkClosure(closure);
    const loss = closure ? enableGrad(closure) : null;
    noGrad(() => {
      for (const group of this.paramGroups) this.update(group);
    });
    this.finishStep();
    return loss;
  }
  protected checkClosure(closure: unknown): void {
    if (closure === undefined || closure === null || typeof closure === "function") return;
    const { name } = this.constructor;
    throw new TypeError_(`${name}: expected a function as closure, got ${describe(closure)}`);
  }
  /** Every step() ends with this. */
  protected finishStep(): void {
    if (inTidy()) this.keepState();
    // A step is over: most of what it allocated is garbage now.
    backend.hint();
  }
  // A step may have made its state anew inside a tidy, which must not free it.
  private keepState(): void {
    const tensors: Tensor[] = [];
    for (const held of this.state.values()) {
      for (const key in held) {
        const value = held[key];
        if (value instanceof Tensor) tensors.push(value);
        else if (Array.isArray(value)) tensors.push(...value.filter((x) => x instanceof Tensor));
      }
    }
    keepAll(tensors);
  }
  protected abstract update(group: ParamGroup<Options>): void;

  /** The state of a parameter, made by `init` at its first step. */
  protected stateOf<S extends ParamState>(param: Tensor, init: () => S): S {
    let state = this.state.get(param);
    if (!state) this.state.set(param, (state = init()));
    return state as S;
  }
  /** The parameters of a group that have a gradient, each with it. */
  protected *withGrads(params: readonly Tensor[]): Generator<[Tensor, Tensor]> {
    for (const param of params) {
      const grad = param.grad;
      if (grad) yield [param, grad];
    }
  }

  /** Everything but the parameters, for saving; numbers stand for the parameters. */
  stateDict(): OptimizerState {
    const numbers = new Map<Tensor, number>();
    const param_groups = this.paramGroups.map(({ params, ...options }) => ({
      ...renamed(options, snakeCase),
      params: params.map((p) => {
        if (!numbers.has(p)) numbers.set(p, numbers.size);
        return numbers.get(p)!;
      }),
    }));
    const state: Record<number, ParamState> = {};
    for (const [param, held] of this.state) {
      const number = numbers.get(param);
      if (number !== undefined) state[number] = { ...held };
    }
    return { state, param_groups };
  }

  /** Takes a saved state on; its tensors are copied, into the dtype of their parameter. */
  loadStateDict(saved: OptimizerState): void {
    const { name } = this.constructor;
    checkSaved(name, saved);
    const groups = saved.param_groups;
    if (groups.length !== this.paramGroups.length) {
      throw new ValueError(
        `${name}: expected a state of ${this.paramGroups.length} parameter groups, ` +
          `got ${groups.length}`,
      );
    }
    const params = new Map<number, Tensor>();
    this.paramGroups.forEach((group, i) => {
      const numbers = groups[i]!.params;
      if (numbers.length !== group.params.length) {
        throw new ValueError(
          `${name}: expected ${group.params.length} parameters in group ${i}, ` +
            `got ${numbers.length}`,
        );
      }
      numbers.forEach((number, k) => params.set(number, group.params[k]!));
    });
    const loaded = this.paramGroups.map((group, i) => {
      const options = cloned(name, renamed({ ...groups[i], params: [] }, camelCase));
      const full = { ...group, ...(options as object), params: group.params };
      this.checkNumbers(full);
      return full;
    });
    const state = new Map<Tensor, ParamState>();
    for (const [number, held] of Object.entries(saved.state)) {
      const param = params.get(Number(number));
      if (!param) throw new ValueError(`${name}: the state has an unknown parameter ${number}`);
      const group = loaded.find(({ params }) => params.includes(param))!;
      const template = this.stateTemplate(param, group, held);
      checkState(name, held, template);
      state.set(param, copyState(name, param, held, template));
    }
    this.state = state;
    if (inTidy()) this.keepState();
    this.paramGroups = loaded;
  }
  /** A state as the first step makes it, which saved ones are compared with; null for none. */
  protected stateTemplate(
    param: Tensor,
    group: ParamGroup<Options>,
    held: ParamState,
  ): ParamState | null {
    void [param, group, held];
    return null;
  }

  toString(): string {
    const groups = this.paramGroups.map(({ params, ...options }, i) => {
      const lines = Object.keys(options)
        .sort()
        .map((key) => `    ${snakeCase(key)}: ${py((options as Record<string, unknown>)[key])}`);
      return [`Parameter Group ${i}`, ...lines, ""].join("\n");
    });
    return `${this.constructor.name} (\n${groups.join("\n")})`;
  }
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }
}

function checkSaved(name: string, saved: OptimizerState): void {
  const isObject = (x: unknown) => typeof x === "object" && x !== null;
  const groups: unknown = isObject(saved) ? saved.param_groups : undefined;
  const whole =
    Array.isArray(groups) &&
    groups.every((group) => isObject(group) && Array.isArray((group as ParamState)["params"])) &&
    isObject(saved.state) &&
    Object.values(saved.state).every(isObject);
  if (whole) return;
  throw new TypeError_(`${name}: expected a state with "state" and "param_groups"`);
}

function cloned(name: string, value: unknown): unknown {
  try {
    return structuredClone(value);
  } catch (cause) {
    const message = `${name}: expected a state of numbers, strings, lists and Tensors`;
    throw Object.assign(new TypeError_(message), { cause });
  }
}

function checkState(name: string, held: ParamState, template: ParamState | null): void {
  const kind = (x: unknown) =>
    x instanceof Tensor ? "a Tensor" : Array.isArray(x) ? "a list" : `a ${typeof x}`;
  for (const [key, usual] of Object.entries(template ?? {})) {
    const given = held[key];
    const list = Array.isArray(usual) && usual.length > 0 && Array.isArray(given);
    // PyTorch saves some numbers as Tensors.
    const alike = (a: unknown, b: unknown) =>
      kind(a) === kind(b) || (a instanceof Tensor && (b === null || typeof b === "number"));
    const odd = list && given.some((item) => !alike(item, usual[0]));
    if (alike(given, usual) && !odd) continue;
    const what = usual === null ? "a Tensor or null" : kind(usual);
    throw new TypeError_(`${name}: expected ${what} as saved ${key}, got ${describe(given)}`);
  }
}

function renamed(options: object, rule: (key: string) => string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(options).map(([key, value]) => [rule(key), value]));
}

// Steps stay float32: a counter in bfloat16 stops at 256.
function copyState(
  name: string,
  param: Tensor,
  held: ParamState,
  template: ParamState | null,
): ParamState {
  const shapeOf = (key: string): readonly number[] | null => {
    if (template === null) return param.shape;
    const usual = template[key];
    return usual instanceof Tensor ? usual.shape : null;
  };
  const copy = (key: string, value: unknown): unknown => {
    if (Array.isArray(value)) return value.map((item) => copy(key, item));
    if (!(value instanceof Tensor)) return cloned(name, value);
    const copied = value.detach().clone();
    if (key === "step") return copied;
    const shape = shapeOf(key);
    if (shape !== null && value.ndim > 0 && String(value.shape) !== String(shape)) {
      throw new ShapeError(
        `${name}: expected a saved ${key} of shape [${shape}], got [${value.shape}]`,
      );
    }
    return param.isFloatingPoint() ? copied.to(param) : copied.to(param.device);
  };
  return Object.fromEntries(Object.entries(held).map(([key, value]) => [key, copy(key, value)]));
}
