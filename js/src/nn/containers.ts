// Containers of modules and parameters.
import { IndexError, TypeError_, ValueError } from "../errors.js";
import { describe } from "../dtype.js";
import { checkTensor, int } from "../frame.js";
import type { Tensor } from "../tensor.js";
import { items } from "./bind.js";
import { Module, type AnyModule } from "./module.js";
import { Parameter } from "./parameter.js";

/** A module that takes one value and gives one. */
export type Layer = Module<[Tensor], Tensor>;

function at<T>(name: string, list: readonly T[], index: number): T {
  const item = Number.isInteger(index) ? list.at(index) : undefined;
  if (item !== undefined) return item;
  const n = list.length;
  throw new IndexError(`${name}: expected an index in [${-n}, ${n - 1}], got ${describe(index)}`);
}

function checkModule(name: string, value: unknown): void {
  if (value instanceof Module) return;
  throw new TypeError_(`${name}: expected a Module, got ${describe(value)}`);
}

/** Pairs of name and value, given as such or as an object. */
function namedPairs<T>(
  op: string,
  given: Readonly<Record<string, T>> | Iterable<readonly [string, T]>,
): (readonly [string, T])[] {
  if (typeof given !== "object" || given === null) {
    throw new TypeError_(`${op}: expected an object of names, got ${describe(given)}`);
  }
  if (!(Symbol.iterator in given)) return Object.entries(given);
  const pairs = items(given as Iterable<readonly [string, T]>, op, "pairs");
  const odd = pairs.find((pair) => !Array.isArray(pair) || typeof pair[0] !== "string");
  if (odd === undefined && !pairs.includes(undefined!)) return pairs;
  throw new TypeError_(`${op}: expected pairs of a name and a value, got ${describe(odd)}`);
}

// Consecutive equal children share a line: "(0-3): 4 x Linear(...)".
function groupedLines(children: readonly [string, AnyModule][]): string[] {
  const lines: string[] = [];
  for (let i = 0; i < children.length;) {
    const text = children[i]![1].toString();
    let end = i + 1;
    while (end < children.length && children[end]![1].toString() === text) end++;
    const body = text.replaceAll("\n", "\n  ");
    const [first, last] = [children[i]![0], children[end - 1]![0]];
    lines.push(end - i === 1 ? `(${first}): ${body}` : `(${first}-${last}): ${end - i} x ${body}`);
    i = end;
  }
  return lines;
}

/** Runs its modules one after the other: `new nn.Sequential(a, b)` or `({ name: a, other: b })`. */
export class Sequential<Args extends unknown[] = [Tensor], Out = Tensor> extends Module<Args, Out> {
  private readonly names: string[] = [];
  private readonly layers: AnyModule[] = [];

  constructor(...layers: readonly AnyModule[] | [Readonly<Record<string, AnyModule>>]) {
    super();
    const [first] = layers;
    const single = layers.length === 1 && typeof first === "object" && first !== null;
    const entries = single
      ? Object.entries(first as unknown as Readonly<Record<string, AnyModule>>)
      : layers.map((layer, i) => [String(i), layer as AnyModule] as const);
    for (const [name, layer] of entries) this.put(name, layer);
  }
  private put(name: string, layer: AnyModule): void {
    checkModule("Sequential", layer);
    this.names.push(name);
    this.layers.push(layer);
  }
  override get length(): number {
    return this.layers.length;
  }
  /** The module at a place; negative ones count from the end. */
  get(index: number): AnyModule {
    return at("Sequential", this.layers, index);
  }
  /** Puts another module in a place. */
  set(index: number, layer: AnyModule): void {
    checkModule("Sequential", layer);
    at("Sequential", this.layers, index);
    this.layers[index < 0 ? index + this.layers.length : index] = layer;
  }
  append(layer: AnyModule): this {
    this.put(String(this.layers.length), layer);
    return this;
  }
  [Symbol.iterator](): Iterator<AnyModule> {
    return this.layers[Symbol.iterator]();
  }
  forward(...args: Args): Out {
    let values: unknown[] = args;
    for (const layer of this.layers) {
      values = [(layer as unknown as (...args: unknown[]) => unknown)(...values)];
    }
    return values[0] as Out;
  }
  override *_fields(): Iterable<readonly [string, unknown]> {
    yield* super._fields();
    for (let i = 0; i < this.layers.length; i++) yield [this.names[i]!, this.layers[i]];
  }
}

/** A list of modules, registered by their index. */
export class ModuleList<M extends AnyModule = AnyModule> extends Module<never, never> {
  private readonly list: M[];
  constructor(modules: Iterable<M> = []) {
    super();
    this.list = items(modules, "ModuleList", "modules");
    for (const module of this.list) checkModule("ModuleList", module);
  }
  override get length(): number {
    return this.list.length;
  }
  get(index: number): M {
    return at("ModuleList", this.list, index);
  }
  set(index: number, module: M): void {
    checkModule("ModuleList", module);
    this.get(index);
    this.list[index < 0 ? index + this.list.length : index] = module;
  }
  append(module: M): this {
    return this.extend([module]);
  }
  insert(index: number, module: M): void {
    checkModule("ModuleList", module);
    this.list.splice(int(index, "ModuleList", "index"), 0, module);
  }
  extend(modules: Iterable<M>): this {
    for (const module of items(modules, "ModuleList", "modules")) {
      checkModule("ModuleList", module);
      this.list.push(module);
    }
    return this;
  }
  [Symbol.iterator](): Iterator<M> {
    return this.list[Symbol.iterator]();
  }
  forward(): never {
    throw new ValueError("ModuleList: not callable; call its modules");
  }
  override *_fields(): Iterable<readonly [string, unknown]> {
    yield* super._fields();
    for (let i = 0; i < this.list.length; i++) yield [String(i), this.list[i]];
  }
  override _childLines(): string[] {
    return groupedLines(this.namedChildren());
  }
}

/** Modules by name. */
export class ModuleDict<M extends AnyModule = AnyModule> extends Module<never, never> {
  private readonly map = new Map<string, M>();
  constructor(modules: Readonly<Record<string, M>> | Iterable<readonly [string, M]> = {}) {
    super();
    this.update(modules);
  }
  update(modules: Readonly<Record<string, M>> | Iterable<readonly [string, M]>): void {
    for (const [name, module] of namedPairs("ModuleDict", modules)) this.set(name, module);
  }
  get size(): number {
    return this.map.size;
  }
  get(name: string): M {
    const module = this.map.get(name);
    if (module) return module;
    throw new ValueError(`ModuleDict: no module "${name}"; there are ${[...this.map.keys()]}`);
  }
  set(name: string, module: M): void {
    checkModule("ModuleDict", module);
    this.map.set(name, module);
  }
  has(name: string): boolean {
    return this.map.has(name);
  }
  delete(name: string): boolean {
    return this.map.delete(name);
  }
  keys(): string[] {
    return [...this.map.keys()];
  }
  values(): M[] {
    return [...this.map.values()];
  }
  entries(): [string, M][] {
    return [...this.map.entries()];
  }
  [Symbol.iterator](): Iterator<[string, M]> {
    return this.map[Symbol.iterator]();
  }
  forward(): never {
    throw new ValueError("ModuleDict: not callable; call its modules");
  }
  override *_fields(): Iterable<readonly [string, unknown]> {
    yield* super._fields();
    yield* this.map;
  }
}

function asParameter(name: string, value: Tensor): Parameter {
  checkTensor(value, name, "parameters");
  return value instanceof Parameter ? value : new Parameter(value);
}

/** A list of parameters, registered by their index; plain tensors become parameters. */
export class ParameterList extends Module<never, never> {
  private readonly list: Parameter[];
  constructor(parameters: Iterable<Tensor> = []) {
    super();
    const given = items(parameters, "ParameterList", "parameters");
    this.list = given.map((value) => asParameter("ParameterList", value));
  }
  override get length(): number {
    return this.list.length;
  }
  get(index: number): Parameter {
    return at("ParameterList", this.list, index);
  }
  append(parameter: Tensor): this {
    this.list.push(asParameter("ParameterList", parameter));
    return this;
  }
  extend(parameters: Iterable<Tensor>): this {
    const given = items(parameters, "ParameterList", "parameters");
    for (const parameter of given) this.append(parameter);
    return this;
  }
  [Symbol.iterator](): Iterator<Parameter> {
    return this.list[Symbol.iterator]();
  }
  forward(): never {
    throw new ValueError("ParameterList: not callable");
  }
  override *_fields(): Iterable<readonly [string, unknown]> {
    yield* super._fields();
    for (let i = 0; i < this.list.length; i++) yield [String(i), this.list[i]];
  }
}

/** Parameters by name; plain tensors become parameters. */
export class ParameterDict extends Module<never, never> {
  private readonly map = new Map<string, Parameter>();
  constructor(parameters: Readonly<Record<string, Tensor>> = {}) {
    super();
    for (const [name, value] of namedPairs("ParameterDict", parameters)) this.set(name, value);
  }
  get size(): number {
    return this.map.size;
  }
  get(name: string): Parameter {
    const parameter = this.map.get(name);
    if (parameter) return parameter;
    throw new ValueError(`ParameterDict: no parameter "${name}"`);
  }
  set(name: string, parameter: Tensor): void {
    this.map.set(name, asParameter("ParameterDict", parameter));
  }
  has(name: string): boolean {
    return this.map.has(name);
  }
  keys(): string[] {
    return [...this.map.keys()];
  }
  [Symbol.iterator](): Iterator<[string, Parameter]> {
    return this.map[Symbol.iterator]();
  }
  forward(): never {
    throw new ValueError("ParameterDict: not callable");
  }
  override *_fields(): Iterable<readonly [string, unknown]> {
    yield* super._fields();
    yield* this.map;
  }
}
