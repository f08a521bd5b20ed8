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

function lookUp(path: string): unknown {
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
  return list;
}
