// Tensors as text, character for character as PyTorch prints them.
import { ValueError } from "./errors.js";

/** What printing needs to know of a tensor; elements are asked for only where they are shown. */
export interface Printable {
  readonly shape: readonly number[];
  /** PyTorch's name, such as "float32". */
  readonly dtype: string;
  /** The element at a row-major index; of a complex tensor, the real part. */
  at(index: number): number | bigint | boolean;
  /** The imaginary part, needed for complex tensors only. */
  imagAt?(index: number): number;
  /** Shown when it is not "cpu". A "meta" tensor has no elements to show. */
  readonly device?: string;
  readonly requiresGrad?: boolean;
  /** The name of the node that made the tensor, such as "MulBackward0". */
  readonly gradFn?: string | null;
  /** The default floating point dtype, "float32" unless set otherwise. */
  readonly defaultDtype?: string;
  /** True for a module's parameter, which says so on a line of its own. */
  readonly parameter?: boolean;
}

/** How tensors are printed; see `setPrintoptions`. */
export interface PrintOptions {
  /** Digits after the point (default 4). */
  precision?: number;
  /** Tensors with more elements are summarised (default 1000). */
  threshold?: number;
  /** Items shown at the start and the end of each summarised dimension (default 3). */
  edgeitems?: number;
  /** Characters per line (default 80). */
  linewidth?: number;
  /** Whether to use scientific notation; `null` (default) decides by the values. */
  sciMode?: boolean | null;
  /** A set of defaults to start from. */
  profile?: "default" | "short" | "full";
}

const profiles = {
  default: { precision: 4, threshold: 1000, edgeitems: 3, linewidth: 80 },
  short: { precision: 2, threshold: 1000, edgeitems: 2, linewidth: 80 },
  full: { precision: 4, threshold: Infinity, edgeitems: 3, linewidth: 80 },
};

const options = { ...profiles.default, sciMode: null as boolean | null };

/** Sets how tensors print. As in PyTorch, what is left out stays, except `sciMode`. */
export function setPrintoptions(changes: PrintOptions = {}): void {
  const { profile, sciMode = null, ...rest } = changes;
  if (profile !== undefined && !Object.hasOwn(profiles, profile)) {
    const known = Object.keys(profiles).join(", ");
    throw new ValueError(`setPrintoptions: expected a profile among ${known}, got ${profile}`);
  }
  const next = { ...options, ...(profile && profiles[profile]), sciMode };
  for (const key of ["precision", "threshold", "edgeitems", "linewidth"] as const) {
    const value = rest[key];
    if (value === undefined) continue;
    const most = key === "precision" ? 60 : Infinity;
    if (!(value >= 0 && value <= most && (Number.isInteger(value) || value === Infinity))) {
      throw new ValueError(`setPrintoptions: expected ${key} in [0, ${most}], got ${value}`);
    }
    next[key] = value;
  }
  Object.assign(options, next);
}

const isFloating = (dtype: string) => /^b?float/.test(dtype);
const isComplex = (dtype: string) => dtype.startsWith("complex");

function nonFinite(value: number): string {
  return Number.isNaN(value) ? "nan" : value < 0 ? "-inf" : "inf";
}

/**
 * Rounds half to even where JavaScript rounds half away from zero: `exact` holds the digits up to
 * and including the one to drop, and `rounded` what JavaScript makes of the value.
 */
function halfToEven(exact: string, rounded: string): string {
  const kept = exact.slice(0, -1).replace(/\.$/, "");
  return exact.endsWith("5") && Number(kept.at(-1)) % 2 === 0 ? kept : rounded;
}

/** The value with `digits` digits after the point, rounded half to even. */
function fixed(value: number, digits: number): string {
  if (!Number.isFinite(value)) return nonFinite(value);
  if (Object.is(value, -0)) return `-${fixed(0, digits)}`;
  if (Math.abs(value) >= 1e21) return BigInt(value) + (digits > 0 ? `.${"0".repeat(digits)}` : "");
  const rounded = value.toFixed(digits);
  // Only a value with at most digits + 1 binary places can lie half-way between two results.
  return Number.isInteger(value * 2 ** (digits + 1))
    ? halfToEven(value.toFixed(digits + 1), rounded)
    : rounded;
}

/** The value in scientific notation, rounded half to even, with two digits of exponent or more. */
function scientific(value: number, digits: number): string {
  if (!Number.isFinite(value)) return nonFinite(value);
  if (Object.is(value, -0)) return `-${scientific(0, digits)}`;
  const [mantissa, exponent] = value.toExponential(digits).split("e") as [string, string];
  // No double comes this close to a half without being one.
  const long = value.toExponential(digits + 40).split("e")[0]!;
  const exact = long.replace(/0*$/, "");
  const isHalf = exact.length === long.length - 39;
  const rounded = isHalf ? halfToEven(exact, mantissa) : mantissa;
  return `${rounded}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
}

/** Formats the elements of one tensor to a common width, in the style that its values call for. */
class Formatter {
  readonly width: number = 1;
  private readonly text: (value: number | bigint | boolean) => string;

  constructor(values: readonly (number | bigint | boolean)[], floating: boolean) {
    if (!floating) {
      this.text = plain;
      this.width = values.reduce<number>((width, v) => Math.max(width, plain(v).length), 1);
      return;
    }
    const numbers = (values as number[]).filter((value) => Number.isFinite(value) && value !== 0);
    const { precision } = options;
    const integers = numbers.every(Number.isInteger);
    const styles = {
      integer: (value: number) => fixed(value, 0) + (Number.isFinite(value) ? "." : ""),
      fixed: (value: number) => fixed(value, precision),
      scientific: (value: number) => scientific(value, precision),
    };
    const natural = wantsScientific(numbers, integers)
      ? styles.scientific
      : integers
        ? styles.integer
        : styles.fixed;
    this.width = numbers.reduce((width, value) => Math.max(width, natural(value).length), 1);
    // A notation asked for changes the style but, as in PyTorch, not the width.
    const asked = { true: styles.scientific, false: integers ? styles.integer : styles.fixed };
    const style = options.sciMode === null ? natural : asked[`${options.sciMode}`];
    this.text = style as (value: number | bigint | boolean) => string;
    if (numbers.length === 0) this.text = styles.integer as typeof this.text;
  }

  format(value: number | bigint | boolean): string {
    return this.text(value).padStart(this.width);
  }
}

function plain(value: number | bigint | boolean): string {
  return typeof value === "boolean" ? (value ? "True" : "False") : String(value);
}

/** True when the finite, non-zero values differ too much in size, or are too large or small. */
function wantsScientific(numbers: readonly number[], integers: boolean): boolean {
  let least = Infinity;
  let most = 0;
  for (const value of numbers) {
    const size = Math.abs(value);
    least = Math.min(least, size);
    most = Math.max(most, size);
  }
  return most / least > 1000 || most > 1e8 || (!integers && least < 1e-4);
}

/** Prints the elements of one tensor; a part of it is a dimension and the index of its start. */
class Body {
  private readonly strides: number[];
  private readonly summarize: boolean;
  private readonly real: Formatter;
  private readonly imag: Formatter | null = null;

  constructor(private readonly tensor: Printable) {
    const { shape, dtype } = tensor;
    this.strides = shape.map((_, i) => shape.slice(i + 1).reduce((a, b) => a * b, 1));
    this.summarize = shape.reduce((a, b) => a * b, 1) > options.threshold;
    const shown = [...this.shownIndices(0, 0)];
    const floating = isFloating(dtype) || isComplex(dtype);
    this.real = new Formatter(
      shown.map((index) => tensor.at(index)),
      floating,
    );
    if (isComplex(dtype)) {
      this.imag = new Formatter(
        shown.map((index) => tensor.imagAt!(index)),
        true,
      );
    }
  }

  /** The text of the part; `indent` is the column where it begins. */
  print(dim: number, start: number, indent: number): string {
    const { shape } = this.tensor;
    if (dim === shape.length) return this.element(start);
    if (dim === shape.length - 1) return this.row(dim, start, indent);
    const parts = this.items(dim, start).map((item) =>
      item === null ? "..." : this.print(dim + 1, item, indent + 1),
    );
    const separator = `,${"\n".repeat(shape.length - dim - 1)}${" ".repeat(indent + 1)}`;
    return `[${parts.join(separator)}]`;
  }

  /** Where the items of a part begin; `null` stands for those left out. */
  private items(dim: number, start: number): (number | null)[] {
    const size = this.tensor.shape[dim]!;
    const position = (i: number) => start + i * this.strides[dim]!;
    const edge = options.edgeitems;
    if (!this.summarize || size <= 2 * edge)
      return Array.from({ length: size }, (_, i) => position(i));
    const first = Array.from({ length: edge }, (_, i) => position(i));
    const last = Array.from({ length: edge }, (_, i) => position(size - edge + i));
    return [...first, null, ...last];
  }

  private *shownIndices(dim: number, start: number): Generator<number> {
    if (dim === this.tensor.shape.length) {
      yield start;
      return;
    }
    for (const item of this.items(dim, start)) {
      if (item !== null) yield* this.shownIndices(dim + 1, item);
    }
  }

  private element(index: number): string {
    const text = this.real.format(this.tensor.at(index));
    if (this.imag === null) return text;
    const imaginary = this.imag.format(this.tensor.imagAt!(index)).trimStart();
    return `${text}${imaginary.startsWith("-") ? "" : "+"}${imaginary}j`;
  }

  private row(dim: number, start: number, indent: number): string {
    const width = this.real.width + 2 + (this.imag === null ? 0 : this.imag.width + 1);
    const perLine = Math.max(1, Math.floor((options.linewidth - indent) / width));
    const texts = this.items(dim, start).map((item) =>
      item === null ? " ..." : this.element(item),
    );
    const lines: string[] = [];
    for (let i = 0; i < texts.length; i += perLine) {
      lines.push(texts.slice(i, i + perLine).join(", "));
    }
    return `[${lines.join(`,\n${" ".repeat(indent + 1)}`)}]`;
  }
}

function sizeText(shape: readonly number[]): string {
  return `size=(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;
}

/** What follows the elements: device, size, dtype and how the tensor takes part in autograd. */
function suffixesOf(tensor: Printable, empty: boolean): string[] {
  const { shape, dtype, device = "cpu", defaultDtype = "float32" } = tensor;
  const defaultComplex = defaultDtype === "float64" ? "complex128" : "complex64";
  const suffixes: string[] = [];
  if (device !== "cpu") suffixes.push(`device='${device}'`);
  if (device === "meta" || (empty && shape.length !== 1)) suffixes.push(sizeText(shape));
  const silent =
    dtype === defaultDtype ||
    (!empty && device !== "meta" && [defaultComplex, "int64", "bool"].includes(dtype));
  if (!silent) suffixes.push(`dtype=torch.${dtype}`);
  if (tensor.gradFn) suffixes.push(`grad_fn=<${tensor.gradFn}>`);
  else if (tensor.requiresGrad) suffixes.push("requires_grad=True");
  return suffixes;
}

/** The text of a tensor, as `print(tensor)` shows it in PyTorch. */
export function formatTensor(tensor: Printable): string {
  const prefix = "tensor(";
  const indent = prefix.length;
  const empty = tensor.shape.includes(0);
  let text = prefix;
  if (tensor.device === "meta") text += "...";
  else text += empty ? "[]" : new Body(tensor).print(0, 0, indent);
  // The end of the last line, counted as PyTorch counts it: two more than the characters there.
  let column = text.length - text.lastIndexOf("\n") + 1;
  for (const suffix of suffixesOf(tensor, empty)) {
    if (column + suffix.length + 2 > options.linewidth) {
      text += `,\n${" ".repeat(indent)}${suffix}`;
      column = indent + suffix.length;
    } else {
      text += `, ${suffix}`;
      column += suffix.length + 2;
    }
  }
  return `${tensor.parameter ? "Parameter containing:\n" : ""}${text})`;
}
