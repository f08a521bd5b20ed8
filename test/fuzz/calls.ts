// Random operator calls: arguments by the schema's types, now and then of the wrong kind.
import * as torch from "cresset";
import { operators, type Argument, type Operator } from "./operators.js";

/** A small reproducible generator (mulberry32). */
export class Random {
  constructor(private state: number) {}
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }
  below(n: number): number {
    return Math.floor(this.next() * n);
  }
  chance(p: number): boolean {
    return this.next() < p;
  }
  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }
}

const shapes = [
  ...[[], [1], [3], [0], [17], [130], [2, 3], [3, 3], [1, 3], [0, 3], [5, 33]],
  ...[
    [2, 3, 4],
    [3, 0, 2],
    [1, 1, 1],
    [2, 3, 5, 5],
    [1, 4, 7, 6],
    [1, 2, 3, 4, 5],
  ],
];
const hugeShapes = [[2 ** 31, 3], [2 ** 40], [2 ** 20, 2, 2 ** 20], [2 ** 25, 2 ** 25]];
const dtypes = [
  torch.bool,
  torch.uint8,
  torch.int8,
  torch.int16,
  torch.int32,
  torch.int64,
  torch.float16,
  torch.bfloat16,
  torch.float32,
  torch.float32,
  torch.float64,
  torch.complex64,
  torch.complex128,
];
const ints = [
  ...[0, 1, 2, 3, -1, -2, -3, 5, 7, 64, 100, -100, 1000],
  ...[2 ** 31 - 1, 2 ** 31, -(2 ** 31), 2 ** 32, 2 ** 32 + 1, 2 ** 40, 2 ** 53 - 1, 1 - 2 ** 53],
  ...[2n ** 62n, -(2n ** 62n), 2n ** 63n - 1n, -(2n ** 63n), 1n - 2n ** 63n, 2n ** 63n],
];
const floats = [
  ...[0, 1, -1, 0.5, -0.5, 2, 1e-8, 1e30, -1e30, NaN, Infinity, -Infinity, -0],
  ...[5e-324, 1e-45, 1e300, -1e300, 2 ** 63, -(2 ** 63), 65504, 1 - 2 ** -53],
];
const anyTypes = [
  ...["Tensor", "Tensor", "Tensor", "Tensor[]", "Scalar", "int", "int", "int[]", "int[]?"],
  ...["float", "float[]", "bool", "str", "ScalarType"],
];
const wrong: unknown[] = [
  "x",
  null,
  undefined,
  {},
  [],
  NaN,
  1.5,
  true,
  [[1]],
  () => 1,
  10n,
  "",
  -0,
];

export class Arguments {
  constructor(private readonly random: Random) {}

  private last: torch.Tensor | null = null;

  /** A new tensor, or at times the one before or a part of it: operators write what they read. */
  tensor(): torch.Tensor {
    const r = this.random;
    const last = this.last;
    if (last && !last.isDisposed && r.chance(0.1)) {
      return last.dim() > 0 && last.size(0) > 1 && r.chance(0.3) ? last.narrow(0, 1, 1) : last;
    }
    return (this.last = this.fresh());
  }

  private fresh(): torch.Tensor {
    const r = this.random;
    const dtype = r.pick(dtypes);
    if (r.chance(0.01)) return torch.empty(r.pick(hugeShapes), { dtype, device: "meta" });
    return this.small(dtype);
  }

  private small(dtype = this.random.pick(dtypes)): torch.Tensor {
    const r = this.random;
    const shape = r.pick(shapes);
    const n = shape.reduce((a, b) => a * b, 1);
    const numbers = Array.from({ length: n }, () =>
      r.chance(0.1) ? r.pick(floats) : r.below(7) - 2,
    );
    let t = torch.tensor(numbers, { dtype: torch.float64 }).reshape(shape).to(dtype);
    if (shape.length > 1 && r.chance(0.3)) t = t.transpose(0, 1);
    if (shape.length === 1 && r.chance(0.1)) t = t.expand(2, shape[0]!);
    else if (shape.length === 1 && n > 2 && r.chance(0.1)) t = t.asStrided([2, 2], [1, 1]);
    else if (n > 0 && shape.length > 0 && r.chance(0.1)) t = t.narrow(-1, 1, t.size(-1) - 1);
    if (r.chance(0.05)) t = t.to("meta");
    const differentiable = dtype.isFloatingPoint || dtype.isComplex;
    if (differentiable && r.chance(0.3)) t = t.detach().requiresGrad_(true);
    if (r.chance(0.01)) t.dispose();
    return t;
  }

  list<T>(make: () => T): T[] {
    return Array.from({ length: this.random.below(4) }, make);
  }

  scalar(): unknown {
    const r = this.random;
    return r.pick([r.pick(floats), r.pick(ints), true, 3n, new torch.Complex(1, -2)]);
  }

  value(arg: Argument): unknown {
    const r = this.random;
    if (r.chance(0.03)) return r.pick(wrong);
    if (arg.type.endsWith("?") && r.chance(0.5)) return null;
    if (arg.choices) return r.pick(arg.choices);
    switch (arg.type.replace("?", "").replace("[]?", "[]")) {
      case "Tensor":
        return this.tensor();
      case "Tensor|Scalar":
        return r.chance(0.6) ? this.tensor() : this.scalar();
      case "Scalar":
        return this.scalar();
      case "int":
        return r.chance(0.8) ? r.below(6) - 2 : r.pick(ints);
      case "float":
        return r.pick(floats);
      case "bool":
        return r.chance(0.5);
      case "ScalarType":
        return r.pick(dtypes);
      case "Device":
        return r.pick(["cpu", "meta", "cuda"]);
      case "str":
        return r.pick(["ij,jk->ik", "none", "mean", "sum", "ij->ji", "...", "reflect", "constant"]);
      case "Tensor[]":
        return this.list(() => this.tensor());
      case "int[]":
        return this.list(() => (r.chance(0.9) ? r.below(5) - 1 : r.pick(ints)));
      case "any": {
        // A tensor in place of a list is read row by row: no huge one here.
        const type = r.pick(anyTypes);
        return type === "Tensor" ? this.small() : this.value({ ...arg, type, optional: false });
      }
      case "float[]":
      case "Scalar[]":
        return this.list(() => r.pick(floats));
      default:
        return r.pick(wrong);
    }
  }

  /** Positional arguments, then at times a trailing object of named ones. */
  of(op: Operator): unknown[] {
    const args: unknown[] = [];
    const named: Record<string, unknown> = {};
    for (const arg of op.args) {
      if (arg.optional && this.random.chance(0.5)) continue;
      if (arg.keywordOnly || Object.keys(named).length > 0 || this.random.chance(0.1)) {
        named[arg.name] = this.value(arg);
      } else if (args.length === op.args.indexOf(arg)) {
        args.push(this.value(arg));
      } else {
        named[arg.name] = this.value(arg);
      }
    }
    return Object.keys(named).length > 0 ? [...args, named] : args;
  }
}

function show(x: unknown): string {
  if (x instanceof torch.Tensor) {
    if (x.isDisposed) return "disposed";
    return `${x.dtype.name}[${x.shape}]/${x.stride()}${x.requiresGrad ? "g" : ""}@${x.device}`;
  }
  if (Array.isArray(x)) return `[${x.map(show).join(", ")}]`;
  if (typeof x === "bigint") return `${x}n`;
  if (typeof x === "object" && x !== null && Object.getPrototypeOf(x) === Object.prototype) {
    return `{${Object.entries(x).map(([k, v]) => `${k}: ${show(v)}`)}}`;
  }
  return typeof x === "string" ? JSON.stringify(x) : String(x);
}

function tensorsIn(x: unknown): torch.Tensor[] {
  if (x instanceof torch.Tensor) return [x];
  if (typeof x !== "object" || x === null || !(Symbol.iterator in x)) return [];
  return [...(x as Iterable<unknown>)].filter((t): t is torch.Tensor => t instanceof torch.Tensor);
}

// Reads the result and runs the backward pass, at times after the integers around it (indices
// above all) were written over, at times twice: a fault there counts as much.
function use(result: unknown, args: unknown[], random: Random): void {
  const named = args.filter((x) => typeof x === "object" && x !== null).flatMap(Object.values);
  const given = [...args, ...named].flatMap(tensorsIn);
  if (random.chance(0.05)) {
    for (const t of [...given, ...tensorsIn(result)]) {
      if (t.dtype === torch.int64 && !t.isDisposed) t.fill_(2 ** 40);
    }
  }
  for (const t of tensorsIn(result)) {
    if (t.device.type === "meta") continue;
    if (t.numel() < 10000) t.data();
    if (!t.requiresGrad || t.numel() === 0 || t.numel() >= 10000 || t.isComplex()) continue;
    const leaves = given.filter((x) => x.isLeaf && x.requiresGrad);
    if (random.chance(0.2) && leaves.length > 0) {
      const options = { createGraph: true, allowUnused: true };
      const [g] = torch.autograd.grad([torch.sum(t)], leaves, options);
      if (g?.requiresGrad && !g.isComplex()) torch.sum(g).backward();
    } else {
      torch.sum(t).backward();
    }
  }
}

function stillWorks(): boolean {
  const a = torch.tensor([1, 2, 3]);
  return String(torch.add(a, a).tolist()) === "2,4,6";
}

export interface Report {
  calls: number;
  operators: number;
  results: number;
  errors: number;
  findings: string[];
  slowest: { milliseconds: number; call: string };
}

/** Random calls until the time is over. `before` is told each call before it is made. */
export function run(
  milliseconds: number,
  seed: number,
  only: RegExp,
  before: (call: string) => void,
): Report {
  const random = new Random(seed);
  const source = new Arguments(random);
  const list = operators().filter((op) => only.test(op.path));
  const report: Report = {
    ...{ calls: 0, operators: list.length, results: 0, errors: 0, findings: [] },
    slowest: { milliseconds: 0, call: "" },
  };
  torch.memory.setLimit(512 * 2 ** 20);
  const end = Date.now() + milliseconds;
  while (Date.now() < end && report.findings.length < 20) {
    const op = random.pick(list);
    const args = source.of(op);
    const call = `${op.path}(${args.map(show).join(", ")})`;
    before(call);
    report.calls++;
    const start = performance.now();
    try {
      use(op.call(args), args, random);
      report.results++;
    } catch (error) {
      if (error instanceof torch.CressetError && !(error instanceof torch.InternalError)) {
        report.errors++;
      } else {
        report.findings.push(`${call}\n  ${(error as Error).stack ?? String(error)}`);
      }
    }
    const milliseconds = performance.now() - start;
    if (milliseconds > report.slowest.milliseconds) report.slowest = { milliseconds, call };
    if (report.calls % 100 === 0 && !stillWorks()) {
      report.findings.push(`after ${call} an addition was wrong`);
    }
  }
  return report;
}
