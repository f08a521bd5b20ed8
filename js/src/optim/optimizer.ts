// optim.Optimizer: parameter groups, state and its saving, shared by all optimizers.
import { enableGrad, noGrad } from "../autograd.js";
import { backend } from "../backend.js";
import { describe, FloatScalar } from "../dtype.js";
import { ShapeError, TypeError_, ValueError } from "../errors.js";
import * as ops from "../ops.gen.js";
import { Tensor } from "../tensor.js";
import { inTidy, keepAll } from "../tidy.js";
import { checkNames, isOptions } from "../frame.js";
import { py } from "../nn/bind.js";

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

  constructor(params: Params<Options>, defaults: Options, given: object = {}) {
    const { name } = this.constructor;
    if (!isOptions(given)) {
      throw new TypeError_(`${name}: expected an object of options, got ${describe(given)}`);
    }
    checkNames(name, given, Object.keys(defaults));
    this.defaults = { ...defaults };
    for (const [key, value] of Object.entries(given)) {
      if (value !== undefined) (this.defaults as Record<string, unknown>)[key] = plain(value);
    }
    if (params instanceof Tensor || typeof params[Symbol.iterator] !== "function") {
      throw new TypeError_(
        `${name}: expected a list of parameters or groups, got ${describe(params)}`,
      );
    }
    const list = [...params] as unknown[];
    if (list.length === 0) throw new ValueError(`${name}: got an empty list of parameters`);
    const groups = isOptions(list[0]) ? list : [{ params: list }];
    for (const group of groups) this.addParamGroup(group as never);
  }

  /** Adds a group; options that it does not name are the optimizer's defaults. */
  addParamGroup(group: Partial<Options> & { params: Iterable<Tensor> | Tensor }): void {
    const { name } = this.constructor;
    const options = Object.entries(group).map(([key, value]) => [key, plain(value)]);
    const params = group.params instanceof Tensor ? [group.params] : [...group.params];
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
    const full = { ...this.defaults, ...Object.fromEntries(options), params };
    this.check(full);
    this.paramGroups.push(full);
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
    const loss = closure ? enableGrad(closure) : null;
    noGrad(() => {
      for (const group of this.paramGroups) this.update(group);
    });
    this.finishStep();
    return loss;
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
    const state = new Map<Tensor, ParamState>();
    for (const [number, held] of Object.entries(saved.state)) {
      const param = params.get(Number(number));
      if (!param) throw new ValueError(`${name}: the state has an unknown parameter ${number}`);
      state.set(param, copyState(name, param, held));
    }
    this.state = state;
    if (inTidy()) this.keepState();
    this.paramGroups = this.paramGroups.map((group, i) => {
      const options = structuredClone(renamed({ ...groups[i], params: [] }, camelCase));
      return { ...group, ...options, params: group.params };
    });
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

function renamed(options: object, rule: (key: string) => string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(options).map(([key, value]) => [rule(key), value]));
}

// Steps stay float32: a counter in bfloat16 stops at 256.
function copyState(name: string, param: Tensor, held: ParamState): ParamState {
  const copy = (key: string, value: unknown): unknown => {
    if (!(value instanceof Tensor)) return structuredClone(value);
    const copied = value.detach().clone();
    if (key === "step") return copied;
    if (value.ndim > 0 && String(value.shape) !== String(param.shape)) {
      throw new ShapeError(
        `${name}: expected a saved ${key} of shape [${param.shape}], got [${value.shape}]`,
      );
    }
    return param.isFloatingPoint() ? copied.to(param) : copied.to(param.device);
  };
  return Object.fromEntries(Object.entries(held).map(([key, value]) => [key, copy(key, value)]));
}
