// The public operators with the types of their arguments, from the core's schemas.
import * as torch from "cresset";
import { parseOps, type ParsedArg } from "../../js/gen/schema.mjs";

export interface Argument {
  name: string;
  type: string;
  choices: string[] | null;
  optional: boolean;
  keywordOnly: boolean;
}

export interface Operator {
  /** Where it stands: "add", "nn.functional.relu", "Tensor.add_". */
  path: string;
  args: Argument[];
  call(args: unknown[]): unknown;
}

const namespaces: Record<string, string> = {
  nn: "nn.functional",
  linalg: "linalg",
  special: "special",
  fft: "fft",
  torch: "",
};

function argument(a: ParsedArg): Argument {
  const choices = /\{(.*)\}/.exec(a.type);
  return {
    name: a.js,
    type: a.type,
    choices: choices ? choices[1]!.split("|") : null,
    optional: a.default !== undefined,
    keywordOnly: a.keywordOnly,
  };
}

type Holder = Record<string, unknown>;

/** Functions of the process rather than of tensors. */
const skipped = new RegExp(
  [
    /^Tensor\.(constructor|dispose|cuda|recordStream)$/,
    /^(nn\.init\.layerInit|errorFor|_\w+|[A-Z]\w*|dispose|keep|tidy|noGrad|enableGrad)$/,
    /^(load\w*|save\w*|set\w+|\w*[sS]eed|randomSplit|useDeterministicAlgorithms)$/,
  ]
    .map((pattern) => pattern.source)
    .join("|"),
);

function lookUp(path: string): unknown {
  if (path === "") return torch;
  return path.split(".").reduce<unknown>((at, key) => (at as Holder | undefined)?.[key], torch);
}

/** Every public function and method that comes from a schema. */
export function operators(): Operator[] {
  const parsed = parseOps(JSON.parse(torch._schemas()));
  const list: Operator[] = [];
  for (const op of parsed) {
    const args = op.args.map(argument);
    for (const place of op.places) {
      const prefix = namespaces[place];
      if (prefix === undefined) continue;
      const short = op.js.startsWith(place) ? op.js.slice(place.length) : op.js;
      const name = short.charAt(0).toLowerCase() + short.slice(1);
      const path = prefix ? `${prefix}.${name}` : name;
      const fn = lookUp(path);
      if (typeof fn === "function") list.push({ path, args, call: (a) => fn(...a) as unknown });
    }
    if (op.places.includes("method") && typeof lookUp(`Tensor.prototype.${op.js}`) === "function") {
      list.push({
        path: `Tensor.${op.js}`,
        args,
        call: ([self, ...rest]) => {
          if (!(self instanceof torch.Tensor)) return undefined;
          return (self as unknown as Record<string, (...a: unknown[]) => unknown>)[op.js]!(...rest);
        },
      });
    }
  }
  return list.concat(wrappers(new Set(list.map((op) => op.path))), modules());
}

/** The names that a function takes in its trailing object, by its own complaint about others. */
function optionNames(call: (args: unknown[]) => unknown): string[] {
  try {
    call([torch.ones(1), { noSuchOption: 1 }]);
  } catch (error) {
    const names = /expected one of ([\w, ]+)$/.exec((error as Error).message);
    if (names) return names[1]!.split(", ");
  }
  return [];
}

const any = { type: "any", choices: null, optional: true };
const first = { ...any, name: "self", type: "Tensor", optional: false, keywordOnly: false };
const placed = [0, 1, 2, 3].map((i) => ({ ...any, name: `argument${i}`, keywordOnly: false }));

/** Modules, made of the later arguments and called with the first. */
function modules(): Operator[] {
  const list: Operator[] = [];
  for (const [key, Class] of Object.entries(torch.nn)) {
    if (typeof Class !== "function" || !(Class.prototype instanceof torch.nn.Module)) continue;
    type Make = new (...args: unknown[]) => (x: unknown) => unknown;
    const make = (args: unknown[]) => new (Class as unknown as Make)(...args);
    const names = optionNames(([, ...args]) => make(args));
    const known = names.map((name) => ({ ...any, name, keywordOnly: false }));
    // By default a Transformer has 44 million weights: here its size is always given.
    const large = key === "Transformer";
    if (large) known[0]!.optional = false;
    list.push({
      path: `nn.${key}`,
      args: [first, ...(known.length > 0 ? known : placed)],
      call: ([input, ...args]) => {
        const module = make(large && args.length === 0 ? [8] : args);
        String(module);
        return module(input);
      },
    });
  }
  return list;
}

/** Every other public function and method: written by hand, of arguments unknown here. */
function wrappers(known: Set<string>): Operator[] {
  const list: Operator[] = [];
  for (const prefix of ["", "nn.functional", "nn.init", "linalg", "fft", "special", "Tensor"]) {
    const method = prefix === "Tensor";
    const holder = (method ? torch.Tensor.prototype : lookUp(prefix)) as Holder;
    for (const key of new Set([...Object.keys(holder), ...Object.getOwnPropertyNames(holder)])) {
      const path = prefix ? `${prefix}.${key}` : key;
      if (known.has(path) || skipped.test(path) || (method && key === "data")) continue;
      const fn = Object.getOwnPropertyDescriptor(holder, key)?.value as unknown;
      if (typeof fn !== "function") continue;
      const call = ([self, ...rest]: unknown[]): unknown => {
        if (!method) return fn(self, ...rest) as unknown;
        return self instanceof torch.Tensor ? fn.apply(self, rest) : undefined;
      };
      const named = optionNames(call).map((name) => ({ ...any, name, keywordOnly: true }));
      const leading = method || /^nn\.|^linalg/.test(prefix) ? [first] : [];
      list.push({ path, args: [...leading, ...placed, ...named], call });
    }
  }
  return list;
}
