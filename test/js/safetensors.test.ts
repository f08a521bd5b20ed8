// The safetensors format: broken files, unaligned data, files beyond 4 GiB, atomic writing.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ValueError } from "../../js/src/errors.js";
import {
  encodeSafetensors,
  parseHeader,
  SafetensorsReader,
  writeSafetensors,
  type SafetensorsDType,
} from "../../js/src/safetensors.js";

let folder = "";
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "cresset-"));
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** A file with the given header text and data; `length` replaces the header's true length. */
function fileOf(header: string, data: ArrayLike<number> = [], length?: bigint): Uint8Array {
  const text = new TextEncoder().encode(header);
  const file = new Uint8Array(8 + text.length + data.length);
  new DataView(file.buffer).setBigUint64(0, length ?? BigInt(text.length), true);
  file.set(text, 8);
  file.set(data, 8 + text.length);
  return file;
}

function entry(dtype: string, shape: unknown, offsets: unknown): string {
  return JSON.stringify({ dtype, shape, data_offsets: offsets });
}

const u8 = (begin: number, end: number) => entry("U8", [end - begin], [begin, end]);
const offsetsOf = (offsets: string) =>
  fileOf(`{"a":{"dtype":"U8","shape":[1],"data_offsets":${offsets}}}`, [1]);

const broken: [string, Uint8Array, RegExp][] = [
  ["a key twice", fileOf(`{"a":${u8(0, 1)},"a":${u8(0, 1)}}`, [1]), /"a" stands twice/],
  ["a key twice, escaped", fileOf(`{"a":${u8(0, 1)},"\\u0061":${u8(0, 1)}}`, [1]), /"a" stands/],
  [
    "an inner key twice",
    fileOf('{"a":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}}', [1]),
    /"shape" stands twice/,
  ],
  ["one range for two", fileOf(`{"a":${u8(0, 2)},"b":${u8(0, 2)}}`, [1, 2]), /"b" overlaps "a"/],
  ["an overlap", fileOf(`{"a":${u8(0, 2)},"b":${u8(1, 3)}}`, [1, 2, 3]), /"b" overlaps "a"/],
  [
    "a hole",
    fileOf(`{"a":${u8(0, 1)},"b":${u8(2, 3)}}`, [1, 2, 3]),
    /"b" comes 1 bytes after the end of "a"/,
  ],
  ["a hole at the start", fileOf(`{"a":${u8(1, 2)}}`, [1, 2]), /"a" comes 1 bytes after the start/],
  ["data without a tensor", fileOf(`{"a":${u8(0, 1)}}`, [1, 2]), /1 bytes of data belong/],
  ["truncated data", fileOf(`{"a":${u8(0, 4)}}`, [1, 2]), /"a" ends at byte 4, the data has 2/],
  ["reversed offsets", offsetsOf("[1,0]"), /"a" has reversed data_offsets \[1,0\]/],
  ["negative offsets", offsetsOf("[-1,0]"), /"a" has data_offsets .* expected two byte positions/],
  ["huge offsets", offsetsOf("[0,1e300]"), /"a" has data_offsets .* expected two byte positions/],
  [
    "fractional offsets",
    offsetsOf("[0,0.5]"),
    /"a" has data_offsets .* expected two byte positions/,
  ],
  ["three offsets", offsetsOf("[0,1,1]"), /"a" has data_offsets .* expected two byte positions/],
  ["no offsets", offsetsOf("null"), /"a" has data_offsets .* expected two byte positions/],
  ["too few bytes", fileOf(`{"a":${entry("U8", [1], [0, 0])}}`), /"a" has 0 bytes .* expected 1/],
  [
    "a shape product beyond 64 bits",
    fileOf(`{"a":${entry("F32", [2 ** 40, 2 ** 40], [0, 0])}}`),
    /"a" has shape .*: too large/,
  ],
  [
    "a negative size",
    fileOf(`{"a":${entry("U8", [-1], [0, 1])}}`, [1]),
    /"a" has shape .* expected a list/,
  ],
  [
    "a shape that is no list",
    fileOf(`{"a":${entry("U8", 1, [0, 1])}}`, [1]),
    /"a" has shape 1, expected a list/,
  ],
  ["an unknown dtype", fileOf(`{"a":${entry("F12", [1], [0, 1])}}`, [1]), /unknown dtype "F12"/],
  [
    "a dtype that every object has",
    fileOf(`{"a":${entry("constructor", [1], [0, 1])}}`, [1]),
    /unknown dtype "constructor"/,
  ],
  ["half a byte", fileOf(`{"a":${entry("F4", [1], [0, 1])}}`, [1]), /does not fill whole bytes/],
  ["an entry that is no object", fileOf('{"a":3}'), /"a" is described by 3/],
  ["metadata that are no object", fileOf('{"__metadata__":[]}'), /expected __metadata__/],
  ["metadata with a number", fileOf('{"__metadata__":{"k":1}}'), /__metadata__\["k"\]/],
  ["a header length of 2^63", fileOf("{}", [], 2n ** 63n), /header length 9223372036854775808/],
  ["a header length of 0", fileOf("{}", [], 0n), /header length 0/],
  ["a header length past the file", fileOf("{}", [], 3n), /header length 3/],
  ["a header that is a list", fileOf("[]"), /expected the header to be an object/],
  ["a header that is null", fileOf("null"), /expected the header to be an object/],
  ["a header that is no JSON", fileOf('{"a":'), /not JSON/],
  ["a header that is no UTF-8", fileOf("{}  ").fill(0xff, 10), /not JSON in UTF-8/],
  ["deep nesting", fileOf("[".repeat(100_000)), /not JSON/],
  ["an empty file", new Uint8Array(0), /only 0 bytes/],
];

function failureOf(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return null;
}

describe("malformed headers", () => {
  test.each(broken)("%s", (name, bytes, message) => {
    const file = path.join(folder, name.replace(/\W/g, "_"));
    fs.writeFileSync(file, bytes);
    for (const source of [bytes, file]) {
      const begin = performance.now();
      const error = failureOf(() => parseHeader(source));
      expect(performance.now() - begin).toBeLessThan(1000);
      expect(error).toBeInstanceOf(ValueError);
      expect((error as Error).message).toMatch(message);
    }
    fs.rmSync(file);
  });

  test("a valid header of 15 MB loads", () => {
    const names = Array.from({ length: 180_000 }, (_, i) => `layer.${i}.weight`);
    const text = names.map((name) => `${JSON.stringify(name)}:${entry("F32", [0, 3], [0, 0])}`);
    const padding = JSON.stringify({ note: '"}'.repeat(2_000_000) });
    const file = fileOf(`{"__metadata__":${padding},${text.join(",")}}`);
    expect(file.length).toBeGreaterThan(15e6);
    expect(parseHeader(file).entries.size).toBe(names.length);
  });

  test("empty tensors and an empty file of tensors load", () => {
    const file = fileOf(`{"a":${entry("F32", [0], [0, 0])},"b":${entry("I64", [3, 0], [0, 0])}}`);
    const { entries } = parseHeader(file);
    expect([...entries.values()].map(({ shape }) => shape)).toEqual([[0], [3, 0]]);
    expect(parseHeader(fileOf("{}")).entries.size).toBe(0);
  });

  test("names that objects have anyway are plain names", () => {
    const names = ["__proto__", "constructor", "toString", "ключ", '"\\'];
    const file = encodeSafetensors(
      names.map((name, i) => ({ name, dtype: "U8", shape: [1], bytes: Uint8Array.of(i) })),
    );
    const reader = new SafetensorsReader(file);
    expect(names.map((name) => reader.read(name)[0])).toEqual([0, 1, 2, 3, 4]);
  });
});

const exact: [SafetensorsDType, ArrayBufferView<ArrayBuffer>][] = [
  ["F32", Float32Array.of(1.5, -2)],
  ["BF16", Uint16Array.of(0x3fc0, 0xc000)],
  ["F64", Float64Array.of(1.5, -2)],
  ["I64", BigInt64Array.of(2n ** 62n + 1n, -1n)],
  ["C64", Float32Array.of(1.5, -2, 3, 4)],
];

describe("data not aligned to its element size", () => {
  test.each(exact)("%s after three bytes", (dtype, values) => {
    const bytes = new Uint8Array(values.buffer);
    const size = bytes.length;
    const shape = `[2],"data_offsets":[3,${3 + size}]`;
    for (const space of ["", " ", "  ", "   "]) {
      const header = `{"a":${u8(0, 3)},"b":{"dtype":"${dtype}","shape":${shape}}${space}}`;
      const file = fileOf(header, [7, 8, 9, ...bytes]);
      for (const shift of [0, 1, 3]) {
        const moved = new Uint8Array(file.length + shift).subarray(shift);
        moved.set(file);
        const read = new SafetensorsReader(moved).read("b");
        expect(read.byteOffset % 16).toBe(0);
        expect([...read]).toEqual([...bytes]);
      }
    }
  });
});

describe("large files", () => {
  test("the tail of a sparse file beyond 4 GiB reads at once and in little memory", () => {
    const big = 4294967304;
    const tail = Float32Array.of(1.5, -2);
    const head = fileOf(`{"big":${u8(0, big)},"tail":${entry("F32", [2], [big, big + 8])}}`);
    const file = path.join(folder, "sparse.safetensors");
    const descriptor = fs.openSync(file, "w");
    fs.writeSync(descriptor, head);
    fs.writeSync(descriptor, new Uint8Array(tail.buffer), 0, 8, head.length + big);
    fs.closeSync(descriptor);

    const before = process.memoryUsage().rss;
    const begin = performance.now();
    const reader = new SafetensorsReader(file);
    expect(new Float32Array(reader.read("tail").buffer)).toEqual(tail);
    reader.close();
    expect(performance.now() - begin).toBeLessThan(1000);
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 2 ** 20);
    expect(() => reader.read("tail")).toThrow(/closed/);
    fs.rmSync(file);
  });
});

describe("writing", () => {
  const input = (name: string, dtype: SafetensorsDType, shape: number[], bytes: number[]) => ({
    name,
    dtype,
    shape,
    bytes: Uint8Array.from(bytes),
  });

  test("the layout is that of the reference implementation", () => {
    const inputs = [
      input("b", "U8", [3], [1, 2, 3]),
      input("z", "F32", [1], [0, 0, 128, 63]),
      input("a", "U8", [], [9]),
    ];
    const file = encodeSafetensors(inputs, { format: "pt" });
    const header =
      '{"__metadata__":{"format":"pt"},"z":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},' +
      '"a":{"dtype":"U8","shape":[],"data_offsets":[4,5]},' +
      '"b":{"dtype":"U8","shape":[3],"data_offsets":[5,8]}}';
    const padded = header.padEnd(Math.ceil(header.length / 8) * 8);
    expect(file).toEqual(fileOf(padded, [0, 0, 128, 63, 9, 1, 2, 3]));
  });

  test("a failed write leaves the old file and no other", () => {
    const file = path.join(folder, "kept.safetensors");
    writeSafetensors(file, [input("a", "U8", [1], [5])]);
    const failing = { ...input("a", "U8", [1], []), bytes: () => new Uint8Array(2) };
    expect(() => writeSafetensors(file, [failing])).toThrow(/takes 1 bytes, got 2/);
    expect(new SafetensorsReader(file).read("a")[0]).toBe(5);
    expect(fs.readdirSync(folder)).toEqual(["kept.safetensors"]);
  });

  test("names must be free", () => {
    const twice = [input("a", "U8", [0], []), input("a", "U8", [0], [])];
    expect(() => encodeSafetensors(twice)).toThrow(/"a" has a name that is taken/);
    const reserved = [input("__metadata__", "U8", [0], [])];
    expect(() => encodeSafetensors(reserved)).toThrow(/has a name that is taken/);
  });
});
