// First and second derivatives of every operator against central differences, at the recorded
// sample inputs. What an operator lacks, and why, is listed here and nowhere else.
import { afterAll, describe, expect, it } from "vitest";
import { join } from "node:path";
import * as torch from "cresset";
import { gradcheck, gradgradcheck } from "../../js/src/gradcheck.js";
import { Decoder, isTensorCode, type Code, type TensorCode } from "../parity/codec.js";
import { tensorsIn } from "../parity/compare.js";
import type { OperatorCase } from "../parity/cases.js";
import { Fixture, fixtureNames, openRecordings } from "../parity/fixtures.js";
import { functionForm } from "../parity/operators.js";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const recordings = openRecordings(here("../parity/pytorch-2.11.tar.xz"));
afterAll(() => recordings.close());

/** Central differences cannot be taken here; the reason stands beside each name. */
const withoutFirst: Record<string, string> = {
  as_strided_scatter:
    "PyTorch's gradient of self is not the mathematical one; its numbers are kept",
  bernoulli: "draws random numbers",
  bfloat16: "the result is too coarse for differences",
  cfloat: "the result is too coarse for differences",
  cholesky: "one triangle is read, the gradient is that of a symmetric matrix",
  cholesky_inverse: "the gradient covers the triangle that is not read, as in PyTorch",
  cholesky_solve: "the gradient covers the triangle that is not read, as in PyTorch",
  float: "the result is too coarse for differences",
  half: "the result is too coarse for differences",
  "linalg.cholesky": "one triangle is read, the gradient is that of a symmetric matrix",
  "linalg.eigvalsh": "one triangle is read, the gradient is that of a symmetric matrix",
  "linalg.pinv.hermitian": "one triangle is read, the gradient is that of a symmetric matrix",
  "linalg.cholesky_ex": "one triangle is read, the gradient is that of a symmetric matrix",
  "nn.functional.alpha_dropout": "draws a mask",
  "nn.functional.dropout": "draws a mask",
  "nn.functional.dropout2d": "draws a mask",
  "nn.functional.dropout3d": "draws a mask",
  "nn.functional.feature_alpha_dropout.with_train": "draws a mask",
  "nn.functional.fractional_max_pool2d": "draws the windows",
  "nn.functional.fractional_max_pool3d": "draws the windows",
  "nn.functional.max_unpool1d": "two recorded indices are equal: which value stays is by order",
  "nn.functional.max_unpool2d": "two recorded indices are equal: which value stays is by order",
  "nn.functional.max_unpool3d": "two recorded indices are equal: which value stays is by order",
  "nn.functional.multi_head_attention_forward": "draws a mask",
  "nn.functional.rrelu": "draws random slopes",
  normal: "draws random numbers",
  "normal.number_mean": "draws random numbers",
};

/** Operators without a second derivative, or where differences of it fail. */
const withoutSecond: Record<string, string> = {
  cdist: "refused with NotImplementedError, as a kernel has the first derivative",
  grid_sampler_2d: "refused with NotImplementedError, as a kernel has the first derivative",
  grid_sampler_3d: "refused with NotImplementedError, as a kernel has the first derivative",
  "linalg.norm.subgradients_at_zero": "the first derivative jumps at 0",
  "nn.functional.ctc_loss": "refused with NotImplementedError, as in PyTorch",
  "nn.functional.grid_sample":
    "refused with NotImplementedError, as a kernel has the first derivative",
  "nn.functional.pdist": "refused with NotImplementedError, as in PyTorch",
};

const passing = new Set(
  readFileSync(here("../parity/passing.txt"), "utf8").split("\n").filter(Boolean),
);
const names = fixtureNames(join(recordings.root, "ops")).filter((name) => passing.has(name));

const largest = 30; // elements to be moved in one case
const casesPerOperator = 2;

interface Sample {
  fn: (...leaves: torch.Tensor[]) => Iterable<torch.Tensor>;
  leaves: torch.Tensor[];
}

function tensorCodes(codes: Code): TensorCode[] {
  if (isTensorCode(codes)) return [codes];
  return Array.isArray(codes) ? codes.flatMap(tensorCodes) : [];
}

function sample(fixture: Fixture<OperatorCase>, kase: OperatorCase): Sample | null {
  const codes = [...kase.args, ...Object.values(kase.kwargs)].flatMap(tensorCodes);
  const wanted = codes.filter((c) => c.requires_grad);
  const wide = wanted.every((c) => c.dtype === "float64" || c.dtype === "complex128");
  if (!kase.grad_in || wanted.length === 0 || !wide) return null;
  const decoder = new Decoder(fixture as Fixture<unknown>, "cpu");
  const leaves = wanted.map((c) => decoder.tensor(c) as unknown as torch.Tensor);
  const count = leaves.reduce((sum, t) => sum + t.numel() * (t.isComplex() ? 2 : 1), 0);
  if (count === 0 || count > largest) return null;
  const call = functionForm(fixture.metadata["op"]!, fixture.metadata["variant"] ?? "");
  const fn = (...given: torch.Tensor[]): Iterable<torch.Tensor> => {
    let next = 0;
    const place = (code: Code): unknown => {
      if (isTensorCode(code)) return code.requires_grad ? given[next++] : decoder.tensor(code);
      return Array.isArray(code) ? code.map(place) : decoder.value(code);
    };
    const args = kase.args.map(place);
    const kwargs = Object.fromEntries(
      Object.entries(decoder.record({ ...kase.kwargs })).map(([key, value], i) => {
        const code = Object.values(kase.kwargs)[i]!;
        return [key, tensorCodes(code).length > 0 ? place(code) : value];
      }),
    );
    return tensorsIn(call(args, kwargs)) as unknown as torch.Tensor[];
  };
  return { fn, leaves };
}

function samples(name: string): Sample[] {
  const fixture = new Fixture<OperatorCase>(join(recordings.root, "ops", `${name}.safetensors`));
  const found: Sample[] = [];
  for (const kase of fixture.cases) {
    if (found.length === casesPerOperator) break;
    const s = kase.throws ? null : sample(fixture, kase);
    if (s) found.push(s);
  }
  return found;
}

describe("gradcheck", () => {
  it.each(names)("%s", (name) => {
    if (name in withoutFirst) return;
    for (const { fn, leaves } of samples(name)) {
      expect(gradcheck(fn, leaves)).toBe(true);
      if (!(name in withoutSecond)) expect(gradgradcheck(fn, leaves)).toBe(true);
    }
  });
});
