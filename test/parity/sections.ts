// Runs the recorded cases of modules, optimizers, schedulers and the random-number generator.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { camelCase, construct, fn, lookUp, method, type TensorLike } from "./api.js";
import { Decoder, type Code, type TensorCode } from "./codec.js";
import { judge, Wrong, type Verdict } from "./cases.js";
import { difference, isClose, tensorsIn } from "./compare.js";
import { tensorCodes } from "./codec.js";
import { Fixture } from "./fixtures.js";
import { withNames } from "./operators.js";

/** The cases of one file. */
export interface CaseRun {
  readonly count: number;
  run(index: number): Verdict;
}

interface ModuleCase {
  init_args: Code[];
  init_kwargs: Record<string, Code>;
  training: boolean;
  state: Record<string, Code>;
  state_after: Record<string, Code>;
  args: Code[];
  kwargs: Record<string, Code>;
  out: Code;
  grad_out?: TensorCode[];
  grad_in?: Code[];
  grad_params?: Record<string, Code>;
}

type Callable = (...args: unknown[]) => unknown;

function expectSame(
  path: string,
  actual: unknown,
  expected: Code | undefined,
  fixture: Fixture<unknown>,
): void {
  const found = difference("", path, actual, expected, fixture);
  if (found) throw new Wrong(found);
}

function plainState(fixture: Fixture<unknown>, device: string, codes: Record<string, Code>) {
  const decoder = new Decoder(fixture, device, false);
  return Object.fromEntries(Object.entries(codes).map(([key, code]) => [key, decoder.value(code)]));
}

/** The entries of a Map, of an iterable of pairs or of a plain object, as an object. */
function asRecord(pairs: unknown): Record<string, unknown> {
  const iterable = typeof pairs === "object" && pairs !== null && Symbol.iterator in pairs;
  return iterable
    ? Object.fromEntries(pairs as Iterable<[string, unknown]>)
    : (pairs as Record<string, unknown>);
}

export function moduleRun(path: string, device: string): CaseRun {
  const fixture = new Fixture<ModuleCase>(path);
  const name = fixture.metadata["module"]!;
  const check = (kase: ModuleCase) => {
    const plain = new Decoder(fixture, device, false);
    const initArgs = kase.init_args.map((code) => plain.value(code));
    const module = construct(name, withNames(initArgs, plain.record(kase.init_kwargs)));
    method(module, "double");
    if (device !== "cpu") method(module, "to", device);
    method(module, "loadStateDict", plainState(fixture, device, kase.state));
    method(module, kase.training ? "train" : "eval");

    const inputs = new Decoder(fixture, device);
    const args = kase.args.map((code) => inputs.value(code));
    const out = (module as Callable)(...withNames(args, inputs.record(kase.kwargs)));
    expectSame("out", out, kase.out, fixture);
    const state = asRecord(method(module, "stateDict"));
    for (const [key, code] of Object.entries(kase.state_after))
      expectSame(`state ${key}`, state[key], code, fixture);
    if (kase.grad_out) compareModuleGradients(fixture, device, kase, module, inputs.leaves, out);
  };
  return {
    count: fixture.cases.length,
    run: (index) => judge(() => check(fixture.cases[index]!)),
  };
}

function compareModuleGradients(
  fixture: Fixture<ModuleCase>,
  device: string,
  kase: ModuleCase,
  module: unknown,
  leaves: TensorLike[],
  out: unknown,
): void {
  const codes = tensorCodes(kase.out);
  const outputs = tensorsIn(out).filter((_, i) => codes[i]!.requires_grad);
  const plain = new Decoder(fixture, device, false);
  const gradOutputs = kase.grad_out!.map((code) => plain.tensor(code));
  const parameters = asRecord(method(module, "namedParameters"));
  const names = Object.keys(kase.grad_params ?? {});
  const absent = names.find((name) => !(name in parameters));
  if (absent) throw new Wrong(`no parameter named ${absent}`);
  const wanted = [...leaves, ...names.map((name) => parameters[name])];
  const options = { gradOutputs, allowUnused: true };
  const gradients = fn("autograd.grad")(outputs, wanted, options) as unknown[];
  expectSame("grad", gradients.slice(0, leaves.length), kase.grad_in, fixture);
  for (const [i, name] of names.entries())
    expectSame(`grad ${name}`, gradients[leaves.length + i], kase.grad_params![name], fixture);
}

interface OptimizerCase {
  kwargs: Record<string, Code>;
  params: TensorCode[];
  targets: TensorCode[];
  after: TensorCode[][];
}

export function optimizerRun(path: string, device: string): CaseRun {
  const fixture = new Fixture<OptimizerCase>(path);
  const name = fixture.metadata["optimizer"]!;
  const check = (kase: OptimizerCase) => {
    const decoder = new Decoder(fixture, device);
    const params = kase.params.map((code) => decoder.tensor(code));
    const targets = kase.targets.map((code) => decoder.tensor(code));
    const options = decoder.record(kase.kwargs);
    const optimizer = construct(`optim.${name}`, withNames([params], options));
    const closure = () => {
      method(optimizer, "zeroGrad");
      const losses = params.map((param, i) =>
        method(method(method(param, "sub", targets[i]), "pow", 4), "sum"),
      );
      const loss = losses.reduce((sum, term) => method(sum, "add", term));
      method(loss, "backward");
      return loss;
    };
    for (const [step, expected] of kase.after.entries()) {
      if (name === "LBFGS") method(optimizer, "step", closure);
      else {
        closure();
        method(optimizer, "step");
      }
      expectSame(`step ${step} parameter`, params, expected as unknown as Code, fixture);
    }
  };
  return {
    count: fixture.cases.length,
    run: (index) => judge(() => check(fixture.cases[index]!)),
  };
}

interface Schedule {
  scheduler: string;
  kwargs: Record<string, unknown>;
  base_lr: number;
  lrs: number[];
  metrics?: number[];
}

export function schedulerRun(root: string): CaseRun {
  const path = join(root, "lr_schedulers.json");
  const schedules = JSON.parse(readFileSync(path, "utf8")) as Schedule[];
  const check = ({ scheduler, kwargs, base_lr, lrs, metrics }: Schedule) => {
    const parameter = fn("zeros")([1], { requiresGrad: true });
    const options = { lr: base_lr, momentum: 0.9 };
    const optimizer = construct("optim.SGD", [[parameter], options]);
    const named = Object.entries(kwargs).map(([key, value]) => [camelCase(key), value]);
    const names = Object.fromEntries(named);
    const schedule = construct(`optim.lrScheduler.${scheduler}`, [optimizer, names]);
    for (const [step, expected] of lrs.entries()) {
      const groups = (optimizer as { paramGroups: { lr: number }[] }).paramGroups;
      const lr = Number(groups[0]!.lr);
      if (!isClose(lr, expected, expected, { relative: 1e-9, absolute: 1e-12 }))
        throw new Wrong(`${scheduler}, step ${step}: ${lr}, expected ${expected}`);
      if (step === lrs.length - 1) break;
      method(optimizer, "step");
      method(schedule, "step", ...(metrics ? [metrics[step]] : []));
    }
  };
  return {
    count: schedules.length,
    run: (index) => judge(() => check(schedules[index]!)),
  };
}

interface Draw {
  label: string;
  seed: number;
  size: number[];
  dtype: string;
  out: Code;
  [parameter: string]: unknown;
}

/** How each kind of draw is made; the generator was seeded just before. */
const draws: Record<string, (draw: Draw) => unknown> = {
  rand: ({ size, dtype }) => fn("rand")(size, { dtype: lookUp(dtype) }),
  randn: ({ size, dtype }) => fn("randn")(size, { dtype: lookUp(dtype) }),
  randint: ({ low, high, size }) => fn("randint")(low, high, size),
  randperm: ({ n }) => fn("randperm")(n),
  bernoulli: ({ size, p }) => fn("bernoulli")(fn("full")(size, p)),
  normal: ({ size, mean, std }) => method(fn("empty")(size), "normal_", mean, std),
  uniform: ({ size, low, high }) => method(fn("empty")(size), "uniform_", low, high),
  exponential: ({ size, lambd }) => method(fn("empty")(size), "exponential_", lambd),
  dropout: ({ size, p }) => fn("nn.functional.dropout")(fn("ones")(size), p, true),
  multinomial: ({ weights, num_samples, replacement }) =>
    fn("multinomial")(fn("tensor")(weights), num_samples, replacement),
  "Linear.weight": ({ in_features, out_features }) =>
    weightOf("nn.Linear", [in_features, out_features], "weight"),
  "Conv2d.weight": ({ init }) => weightOf("nn.Conv2d", init, "weight"),
  "Embedding.weight": ({ init }) => weightOf("nn.Embedding", init, "weight"),
  "LSTM.weight_ih_l0": ({ init }) => weightOf("nn.LSTM", init, "weight_ih_l0"),
};

function weightOf(path: string, args: unknown, key: string): unknown {
  const module = construct(path, args as unknown[]);
  return method(asRecord(method(module, "stateDict"))[key], "detach");
}

export function randomRun(root: string): CaseRun {
  const fixture = new Fixture<Draw>(join(root, "random.safetensors"));
  const check = (draw: Draw) => {
    const make = draws[draw.label];
    if (!make) throw new Error(`unknown draw ${draw.label}`);
    fn("manualSeed")(draw.seed);
    expectSame(draw.label, make(draw), draw.out, fixture);
  };
  return {
    count: fixture.cases.length,
    run: (index) => judge(() => check(fixture.cases[index]!)),
  };
}
