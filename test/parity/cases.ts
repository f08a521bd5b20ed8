// Runs one recorded case of an operator in all its forms and says what differs.
import { dtypeName, fn, isTyped, method, saysMissing, type TensorLike } from "./api.js";
import {
  Decoder,
  isTensorCode,
  makeTensor,
  recordedValues,
  tensorCodes,
  type Code,
  type TensorCode,
} from "./codec.js";
import { canCast, castValues, difference, tensorDifference, tensorsIn } from "./compare.js";
import type { Fixture } from "./fixtures.js";
import {
  functionForm,
  inPlaceForm,
  isRandom,
  methodForm,
  reshapesInPlace,
  type Arguments,
  type Call,
} from "./operators.js";
import { eigenvalueOrder, spectralDifference } from "./spectral.js";
import { choosesAmongEquals, differsOnlyInTies } from "./ties.js";

/** A recorded case of an operator. */
export interface OperatorCase {
  args: Code[];
  kwargs: Record<string, Code>;
  out?: Code;
  throws?: boolean;
  grad_out?: TensorCode[];
  grad_in?: Code[];
}

export type Status = "passed" | "notImplemented" | "wrong";

/** The outcome of one case; `text` says what was missing or what differed first. */
export interface Verdict {
  status: Status;
  text?: string;
  mustThrow?: boolean;
}

/** Thrown by the checks below with the first difference. */
export class Wrong extends Error {}

/** Runs a check and turns its end into a verdict. */
export function judge(check: () => void): Verdict {
  try {
    check();
    return { status: "passed" };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    if (saysMissing(error)) return { status: "notImplemented", text };
    if (error instanceof Wrong) return { status: "wrong", text };
    const name = error instanceof Error ? error.name : typeof error;
    return { status: "wrong", text: `threw ${name}: ${text}` };
  }
}

/**
 * Samples of errors were recorded without being run. PyTorch's test of these operators skips the
 * one with a plain number as the bound, since they take it.
 */
const takenAfterAll = new Set(["clamp_min", "clamp_max"]);

/** PyTorch's recordings of random operators were made with this seed. */
const seed = 42;

/** One operator's recordings, ready to run. */
export class OperatorRun {
  private readonly op: string;
  private readonly variant: string;
  private readonly full: string;
  private readonly forms: { name: string; call: Call }[] = [];
  private readonly inPlace: Call | undefined;

  constructor(
    private readonly fixture: Fixture<OperatorCase>,
    private readonly device: string,
  ) {
    const { op, variant, method: hasMethod, inplace } = fixture.metadata;
    this.op = op!;
    this.variant = variant ?? "";
    this.full = this.variant ? `${op}.${variant}` : op!;
    this.forms.push({ name: "function", call: functionForm(this.op, this.variant) });
    const asMethod = hasMethod === "True" ? methodForm(this.op, this.variant) : undefined;
    if (asMethod) this.forms.push({ name: "method", call: asMethod });
    if (inplace === "True") this.inPlace = inPlaceForm(this.op, this.variant);
  }

  /** The worst of what the forms gives: a wrong one counts before a missing one. */
  run(index: number): Verdict {
    const kase = this.fixture.cases[index]!;
    if (kase.throws) return { ...this.mustThrow(kase), mustThrow: true };
    const verdicts = this.forms.map(({ name, call }, i) => {
      if (i > 0 && !isTensorCode(kase.args[0])) return { status: "passed" } as const;
      return named(
        name,
        judge(() => this.compareForm(call, kase, i === 0)),
      );
    });
    const inPlace = this.inPlace;
    if (inPlace && this.allowsInPlace(kase))
      verdicts.push(
        named(
          "in place",
          judge(() => this.compareInPlace(inPlace, kase)),
        ),
      );
    const worst = (status: Status) => verdicts.find((verdict) => verdict.status === status);
    return worst("wrong") ?? worst("notImplemented") ?? { status: "passed" };
  }

  private mustThrow(kase: OperatorCase): Verdict {
    return judge(() => {
      try {
        this.call(this.forms[0]!.call, kase, this.decoder(true));
        // A GPU tells what it found wrong in values when it is waited for.
        if (this.device !== "cpu") fn("cuda.synchronize")();
      } catch (error) {
        this.forgetGpuErrors();
        if (!saysMissing(error) && isTyped(error)) return;
        throw error;
      }
      if (takenAfterAll.has(this.op) && typeof kase.args[1] === "number") return;
      throw new Wrong("no error, expected one");
    });
  }

  /** What kernels that were started before an error still report is not the next case's. */
  private forgetGpuErrors(): void {
    if (this.device === "cpu") return;
    try {
      fn("cuda.synchronize")();
    } catch {
      // Known already: the case was to fail.
    }
  }

  private decoder(withGrad: boolean): Decoder {
    return new Decoder(this.fixture, this.device, withGrad);
  }

  private call(call: Call, kase: OperatorCase, decoder: Decoder): unknown {
    const args = kase.args.map((code, i) =>
      i === 0 && this.variant === "partial_views"
        ? this.partialView(kase, decoder)
        : decoder.value(code),
    );
    const kwargs = decoder.record(kase.kwargs);
    if (isRandom(this.op)) fn("manualSeed")(seed);
    return call(args, kwargs);
  }

  private compareForm(call: Call, kase: OperatorCase, withGrad: boolean): void {
    const decoder = this.decoder(withGrad);
    const out = this.call(call, kase, decoder);
    if (this.device !== "cpu" && isRandom(this.op)) return this.compareKinds(kase, out);
    const compare = spectralDifference(this.full, this.fixture);
    const found = compare
      ? compare(tensorsIn(out), tensorCodes(kase.out))
      : difference(this.op, "out", out, kase.out, this.fixture);
    // Gradients follow the indices: where those are others, so are these.
    if (found && this.onlyTies(kase, out)) return;
    if (found) throw new Wrong(found);
    if (withGrad && kase.grad_out && kase.grad_in) this.compareGradients(kase, decoder, out);
  }

  /** The recorded draws are those of the CPU's generator: on a GPU only shapes and dtypes agree. */
  private compareKinds(kase: OperatorCase, out: unknown): void {
    const kinds = tensorsIn(out).map((t) => `${dtypeName(t.dtype)} [${t.shape.join(", ")}]`);
    const expected = tensorCodes(kase.out).map((code) => {
      const { shape } = this.fixture.read(code.tensor);
      const sizes = code.complex ? shape.slice(0, -1) : shape;
      return `${code.dtype} [${sizes.join(", ")}]`;
    });
    if (String(kinds) !== String(expected))
      throw new Wrong(`out: ${kinds.join("; ")}, expected ${expected.join("; ")}`);
  }

  /**
   * Whether others among equal elements were chosen than in the recording: by a GPU, or by the C++
   * library of WebAssembly, whose std::sort leaves another order than that of PyTorch's builds.
   */
  private onlyTies(kase: OperatorCase, out: unknown): boolean {
    const asRecorded = this.device === "cpu" && process.env["CRESSET_HOST"] !== "wasm";
    if (asRecorded || !choosesAmongEquals(this.op, kase.kwargs)) return false;
    const decoder = this.decoder(false);
    return differsOnlyInTies({
      op: this.op,
      args: kase.args.map((code) => decoder.value(code)),
      kwargs: decoder.record(kase.kwargs),
      actual: out,
      expected: tensorCodes(kase.out).map((code) => decoder.tensor(code)),
    });
  }

  private compareGradients(kase: OperatorCase, decoder: Decoder, out: unknown): void {
    const codes = tensorCodes(kase.out);
    const outputs = tensorsIn(out).filter((_, i) => codes[i]!.requires_grad);
    const gradOutputs = kase.grad_out!.map((code, i) =>
      this.cotangent(code, outputs[i]!, codes[i]!),
    );
    const names = { gradOutputs, allowUnused: true };
    const gradients = fn("autograd.grad")(outputs, decoder.leaves, names);
    const found = difference(this.op, "grad", gradients, kase.grad_in, this.fixture);
    if (found) throw new Wrong(found);
  }

  /** The recorded cotangent, in the order in which our eigenvalues came. */
  private cotangent(code: TensorCode, out: TensorLike, outCode: TensorCode): TensorLike {
    const plain = this.decoder(false).tensor(code);
    if (this.full !== "linalg.eigvals") return plain;
    const order = eigenvalueOrder(this.full, out, recordedValues(this.fixture, outCode));
    if (typeof order === "string") throw new Wrong(order);
    const { shape, bytes } = this.fixture.read(code.tensor);
    const size = bytes.length / Math.max(order.length, 1);
    const permuted = new Uint8Array(bytes.length);
    for (const [from, to] of order.entries())
      permuted.set(bytes.subarray(from * size, (from + 1) * size), to * size);
    return makeTensor(permuted, code.dtype, shape.slice(0, -1), this.device);
  }

  /** Whether PyTorch would take the in-place form: the result fits the tensor and its type. */
  private allowsInPlace(kase: OperatorCase): boolean {
    const [self] = kase.args;
    if (!isTensorCode(self) || !isTensorCode(kase.out)) return false;
    if ("dtype" in kase.kwargs && kase.out.dtype !== self.dtype) return false;
    if (!canCast(kase.out.dtype, self.dtype)) return false;
    if (this.op === "abs" && self.dtype !== kase.out.dtype) return false;
    if (reshapesInPlace.has(this.op)) return true;
    const shape = (code: TensorCode) => String(recordedValues(this.fixture, code).shape);
    return shape(self) === shape(kase.out);
  }

  private compareInPlace(call: Call, kase: OperatorCase): void {
    const decoder = this.decoder(false);
    const self = kase.args[0] as TensorCode;
    let tensor: unknown;
    const inPlace: Call = ([first, ...rest], kwargs: Arguments) => {
      tensor = this.variant === "partial_views" ? first : method(first, "clone");
      return call([tensor, ...rest], kwargs);
    };
    const out = this.call(inPlace, kase, decoder);
    if (out !== tensor) throw new Wrong("the result is not the tensor itself");
    if (this.device !== "cpu" && isRandom(this.op)) return;
    const expected = castValues(recordedValues(this.fixture, kase.out as TensorCode), self.dtype);
    const found = tensorDifference(this.op, "self", tensor as TensorLike, expected);
    if (found) throw new Wrong(found);
  }

  /**
   * `as_strided` counts from the start of the storage. The recording holds only the ten elements
   * of a view that began at element 5; what lay before them shows in the results alone.
   */
  private partialView(kase: OperatorCase, decoder: Decoder): unknown {
    const self = kase.args[0] as TensorCode;
    const bytes = this.fixture.read(self.tensor).bytes;
    const width = bytes.length / 10;
    const storage = new Uint8Array(20 * width);
    if (kase.kwargs["storage_offset"] === 0) {
      const seen = this.fixture.read((kase.out as TensorCode).tensor).bytes;
      for (const [i, place] of [0, 2, 1, 3].entries())
        storage.set(seen.subarray(i * width, (i + 1) * width), place * width);
    }
    storage.set(bytes, 5 * width);
    const base = makeTensor(storage, self.dtype, [20], this.device);
    return decoder.lend(method(base, "narrow", 0, 5, 10) as TensorLike, self);
  }
}

function named(form: string, verdict: Verdict): Verdict {
  if (verdict.status === "passed") return verdict;
  return { ...verdict, text: `${form}: ${verdict.text}` };
}
