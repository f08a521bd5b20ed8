// Saving and loading through a stand-in tensor class, so that the module is tested on its own.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DTypeError, NotImplementedError, TypeError_, ValueError } from "../../js/src/errors.js";
import { parseHeader } from "../../js/src/safetensors.js";
import { Serializer } from "../../js/src/serialization.js";

class Fake {
  constructor(
    readonly dtype: string,
    readonly shape: readonly number[],
    readonly bytes: Uint8Array,
  ) {}
}

const { saveFile, loadFile, toSafetensors, save, load } = new Serializer<Fake>({
  isTensor: (value): value is Fake => value instanceof Fake,
  dtype: (tensor) => tensor.dtype,
  shape: (tensor) => tensor.shape,
  toBytes: (tensor) => tensor.bytes,
  fromBytes: (dtype, shape, bytes) => new Fake(dtype, shape, bytes),
});

const weight = new Fake("uint8", [2, 1], Uint8Array.of(1, 2));
const bias = new Fake("float32", [1], Uint8Array.of(0, 0, 128, 63));
let folder = "";
let file = "";
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "cresset-"));
  file = path.join(folder, "file");
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

test("named tensors survive a file and bytes", () => {
  saveFile({ weight, bias }, file, { note: "x" });
  expect(loadFile(file)).toEqual({ weight, bias });
  expect(loadFile(file, ["bias"])).toEqual({ bias });
  expect(loadFile(toSafetensors(new Map([["w", weight]])))).toEqual({ w: weight });
  expect(parseHeader(file).metadata.get("note")).toBe("x");
  expect(() => loadFile(file, ["nothing"])).toThrow(/no tensor "nothing"/);
});

test("nested data survive, and a tensor met twice is one tensor", () => {
  const data = {
    model: { "0.weight": weight, "0.bias": bias },
    optimizer: { state: new Map([[0, { step: 3, average: bias }]]), groups: [{ lr: 0.1 }] },
    numbers: [NaN, Infinity, -Infinity, -0, 2n ** 70n, 1e-300],
    nothing: [null, undefined, true, "text", ["tensor", "weight"], {}],
    __proto__key: { ["__proto__"]: 1 },
  };
  save(data, file);
  const loaded = load(file) as typeof data;
  expect(loaded).toEqual(data);
  expect(Object.is(loaded.numbers[3], -0)).toBe(true);
  expect(loaded.optimizer.state.get(0)!.average).toBe(loaded.model["0.bias"]);
  expect(parseHeader(file).entries.size).toBe(2);
  save(weight, file);
  expect(load(file)).toEqual(weight);
});

test("paths that meet get names of their own", () => {
  const data = { "a.b": weight, a: { b: bias } };
  save(data, file);
  expect(load(file)).toEqual(data);
});

test("what cannot be saved is named", () => {
  const loop: Record<string, unknown> = {};
  loop["again"] = { loop };
  expect(() => save(loop, file)).toThrow(ValueError);
  expect(() => save({ a: [() => 1] }, file)).toThrow(/save: expected data at a.0, got a function/);
  expect(() => save({ when: new Date() }, file)).toThrow(TypeError_);
  const complex = new Fake("complex128", [0], new Uint8Array(0));
  expect(() => saveFile({ complex }, file)).toThrow(DTypeError);
  expect(() => saveFile({ n: 3 as unknown as Fake }, file)).toThrow(/expected a tensor for "n"/);
});

test("other files are refused with what they look like", () => {
  fs.writeFileSync(file, "PK\u0003\u0004 and so on");
  expect(() => load(file)).toThrow(NotImplementedError);
  fs.writeFileSync(file, "<!DOCTYPE html><html></html>");
  expect(() => load(file)).toThrow(/not a safetensors file/);
  const damaged = toSafetensors({}, { "cresset.tree": '["object", 5]' });
  expect(() => load(damaged)).toThrow(/structure is damaged/);
  const missing = toSafetensors({}, { "cresset.tree": '["tensor", "w"]' });
  expect(() => load(missing)).toThrow(/missing tensor "w"/);
});
