// The safetensors file format: checked parsing, lazy reading and writing, without any tensor class.
import { TypeError_, ValueError } from "./errors.js";
import { allocateBytes, openSource, writeFileAtomically, type ByteSource } from "./files.js";

/**
 * Bits per element of each dtype of the format. The order matters: files are laid out by
 * descending place in this list, as the format's reference implementation does.
 */
const dtypeBits = {
  BOOL: 8,
  F4: 4,
  F6_E2M3: 6,
  F6_E3M2: 6,
  U8: 8,
  I8: 8,
  F8_E5M2: 8,
  F8_E4M3: 8,
  F8_E8M0: 8,
  I16: 16,
  U16: 16,
  F16: 16,
  BF16: 16,
  I32: 32,
  U32: 32,
  F32: 32,
  C64: 64,
  F64: 64,
  I64: 64,
  U64: 64,
} as const;

export type SafetensorsDType = keyof typeof dtypeBits;

/** One tensor of a file; its bytes are `[begin, end)` of the data part. */
export interface SafetensorsEntry {
  readonly name: string;
  readonly dtype: SafetensorsDType;
  readonly shape: readonly number[];
  readonly begin: number;
  readonly end: number;
}

/** What the head of a file says; `dataStart` is where the data part begins. */
export interface SafetensorsHeader {
  readonly entries: ReadonlyMap<string, SafetensorsEntry>;
  readonly metadata: ReadonlyMap<string, string>;
  readonly dataStart: number;
}

/** A tensor to write; `bytes` may be a function, called when its turn comes. */
export interface SafetensorsInput {
  readonly name: string;
  readonly dtype: SafetensorsDType;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array | (() => Uint8Array);
}

const metadataKey = "__metadata__";
const lengthBytes = 8;
// The format's own limit; it also bounds what a broken length can make us allocate.
const maxHeaderLength = 100_000_000;

function isDType(name: unknown): name is SafetensorsDType {
  return typeof name === "string" && Object.hasOwn(dtypeBits, name);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

/** An error about one tensor; called only once something is wrong, for headers can be long. */
function tensorError(label: string, name: string, message: string): ValueError {
  return new ValueError(`${label}: tensor ${show(name)} ${message}`);
}

/** Bytes that a tensor takes, or what is wrong with its shape. */
function byteLength(dtype: SafetensorsDType, shape: readonly number[]): number | string {
  let bits: number = dtypeBits[dtype];
  for (const size of shape) {
    bits *= size;
    if (!Number.isSafeInteger(bits)) return `has shape ${show(shape)} of ${dtype}: too large`;
  }
  if (bits % 8 === 0) return bits / 8;
  return `has shape ${show(shape)} of ${dtype}, which does not fill whole bytes`;
}

/** The position of the quote that ends the JSON string whose text begins at `from`. */
function stringEnd(json: string, from: number): number {
  for (let end = json.indexOf('"', from); ; end = json.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (json[end - 1 - backslashes] === "\\") backslashes++;
    if (backslashes % 2 === 0) return end;
  }
}

/**
 * Finds a key that stands twice in one object of `json`, which `JSON.parse` would hide.
 * The text is valid JSON, so strings, colons and braces are all that has to be recognised.
 */
function duplicateKey(json: string): string | null {
  const open: Set<string>[] = [];
  let lastString = "";
  for (let i = 0; i < json.length; i++) {
    const char = json[i];
    if (char === '"') {
      const end = stringEnd(json, i + 1);
      lastString = json.slice(i + 1, end);
      i = end;
    } else if (char === ":") {
      const key = lastString.includes("\\")
        ? (JSON.parse(`"${lastString}"`) as string)
        : lastString;
      const keys = open[open.length - 1]!;
      if (keys.has(key)) return key;
      keys.add(key);
    } else if (char === "{") open.push(new Set());
    else if (char === "}") open.pop();
  }
  return null;
}

function parseJson(label: string, bytes: Uint8Array): Record<string, unknown> {
  let json: string;
  let value: unknown;
  try {
    json = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(json);
  } catch (cause) {
    throw Object.assign(new ValueError(`${label}: the header is not JSON in UTF-8`), { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ValueError(`${label}: expected the header to be an object, got ${show(value)}`);
  }
  const twice = duplicateKey(json);
  if (twice !== null) throw new ValueError(`${label}: the key ${show(twice)} stands twice`);
  return value as Record<string, unknown>;
}

function parseMetadata(label: string, value: unknown): Map<string, string> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ValueError(`${label}: expected ${metadataKey} to be an object, got ${show(value)}`);
  }
  const metadata = new Map<string, string>();
  for (const [key, text] of Object.entries(value)) {
    if (typeof text !== "string") {
      throw new ValueError(
        `${label}: expected ${metadataKey}[${show(key)}] to be a string, got ${show(text)}`,
      );
    }
    metadata.set(key, text);
  }
  return metadata;
}

function parseEntry(label: string, name: string, value: unknown): SafetensorsEntry {
  const fail = (message: string) => tensorError(label, name, message);
  if (typeof value !== "object" || value === null) {
    throw fail(`is described by ${show(value)}, expected an object`);
  }
  const { dtype, shape, data_offsets: offsets } = value as Record<string, unknown>;
  if (!isDType(dtype)) throw fail(`has the unknown dtype ${show(dtype)}`);
  if (!Array.isArray(shape) || !shape.every(isCount)) {
    throw fail(`has shape ${show(shape)}, expected a list of sizes`);
  }
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount)) {
    throw fail(`has data_offsets ${show(offsets)}, expected two byte positions`);
  }
  const [begin, end] = offsets as [number, number];
  if (begin > end) throw fail(`has reversed data_offsets ${show(offsets)}`);
  const expected = byteLength(dtype, shape);
  if (typeof expected === "string") throw fail(expected);
  if (end - begin !== expected) {
    throw fail(
      `has ${end - begin} bytes at data_offsets ${show(offsets)}, ` +
        `expected ${expected} for shape ${show(shape)} of ${dtype}`,
    );
  }
  return { name, dtype, shape, begin, end };
}

/** Checks that the entries tile the data part: no overlap, no hole, no byte left at the end. */
function checkLayout(label: string, entries: Iterable<SafetensorsEntry>, dataLength: number) {
  const sorted = [...entries].sort((a, b) => a.begin - b.begin || a.end - b.end);
  let position = 0;
  let previous: string | null = null;
  for (const { name, begin, end } of sorted) {
    const fail = (message: string) => tensorError(label, name, message);
    const before = () => (previous === null ? "the start" : `the end of ${show(previous)}`);
    if (begin < position) throw fail(`overlaps ${show(previous)}`);
    if (begin > position) throw fail(`comes ${begin - position} bytes after ${before()}`);
    if (end > dataLength) throw fail(`ends at byte ${end}, the data has ${dataLength}`);
    position = end;
    previous = name;
  }
  if (position !== dataLength) {
    throw new ValueError(`${label}: ${dataLength - position} bytes of data belong to no tensor`);
  }
}

/** Reads and checks the head of a file; nothing is allocated before its length was checked. */
function readHeader(source: ByteSource): SafetensorsHeader {
  const { label, size } = source;
  if (size < lengthBytes) {
    throw new ValueError(`${label}: expected a safetensors file, got only ${size} bytes`);
  }
  const prefix = new Uint8Array(lengthBytes);
  source.readInto(prefix, 0);
  const declared = new DataView(prefix.buffer).getBigUint64(0, true);
  if (declared < 2n || declared > BigInt(Math.min(maxHeaderLength, size - lengthBytes))) {
    throw new ValueError(
      `${label}: not a safetensors file: header length ${declared} in a file of ${size} bytes ` +
        `(at most ${maxHeaderLength})`,
    );
  }
  const dataStart = lengthBytes + Number(declared);
  const text = new Uint8Array(Number(declared));
  source.readInto(text, lengthBytes);

  const entries = new Map<string, SafetensorsEntry>();
  let metadata = new Map<string, string>();
  const fields = parseJson(label, text);
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    if (name === metadataKey) metadata = parseMetadata(label, value);
    else entries.set(name, parseEntry(label, name, value));
  }
  checkLayout(label, entries.values(), size - dataStart);
  return { entries, metadata, dataStart };
}

/** Parses and checks the head of a safetensors file, given by path or as its bytes. */
export function parseHeader(source: string | Uint8Array): SafetensorsHeader {
  const opened = openSource(source);
  try {
    return readHeader(opened);
  } finally {
    opened.close();
  }
}

/** An open safetensors file; tensors are read one by one when asked for. */
export class SafetensorsReader {
  readonly header: SafetensorsHeader;
  private readonly source: ByteSource;

  /** Opens a path, or reads from bytes in memory. */
  constructor(source: string | Uint8Array) {
    this.source = openSource(source);
    try {
      this.header = readHeader(this.source);
    } catch (error) {
      this.source.close();
      throw error;
    }
  }

  get names(): string[] {
    return [...this.header.entries.keys()];
  }

  /** The description of one tensor; an unknown name is a `ValueError`. */
  entry(name: string): SafetensorsEntry {
    const entry = this.header.entries.get(name);
    if (entry) return entry;
    throw new ValueError(`${this.source.label}: no tensor ${show(name)}`);
  }

  /** Reads one tensor's bytes into a new buffer, so they are aligned wherever they lay before. */
  read(name: string): Uint8Array<ArrayBuffer> {
    const { begin, end } = this.entry(name);
    const target = allocateBytes(end - begin, `${this.source.label}: tensor ${show(name)}`);
    this.source.readInto(target, this.header.dataStart + begin);
    return target;
  }

  close(): void {
    this.source.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareInputs(a: SafetensorsInput, b: SafetensorsInput): number {
  const order = Object.keys(dtypeBits);
  return order.indexOf(b.dtype) - order.indexOf(a.dtype) || compareText(a.name, b.name);
}

/** Yields the parts of a file: the head, then each tensor's bytes, widest elements first. */
function* fileParts(
  inputs: Iterable<SafetensorsInput>,
  metadata: Readonly<Record<string, string>>,
): Generator<Uint8Array> {
  if (typeof metadata !== "object" || metadata === null) {
    throw new TypeError_(`saveFile: expected named metadata, got ${String(metadata)}`);
  }
  const odd = Object.entries(metadata).find(([, value]) => typeof value !== "string");
  if (odd) {
    throw new TypeError_(`saveFile: expected text for metadata "${odd[0]}", got ${typeof odd[1]}`);
  }
  const sorted = [...inputs].sort(compareInputs);
  const fields: string[] = [];
  if (Object.keys(metadata).length > 0) {
    fields.push(`${JSON.stringify(metadataKey)}:${JSON.stringify(metadata)}`);
  }
  const seen = new Set([metadataKey]);
  const lengths: number[] = [];
  let begin = 0;
  for (const { name, dtype, shape } of sorted) {
    const fail = (message: string) => tensorError("safetensors", name, message);
    if (seen.has(name)) throw fail("has a name that is taken");
    seen.add(name);
    if (!isDType(dtype)) throw fail(`has the unknown dtype ${show(dtype)}`);
    const length = byteLength(dtype, shape);
    if (typeof length === "string") throw fail(length);
    const description = { dtype, shape, data_offsets: [begin, begin + length] };
    fields.push(`${JSON.stringify(name)}:${JSON.stringify(description)}`);
    lengths.push(length);
    begin += length;
  }
  yield encodeHead(`{${fields.join(",")}}`);
  for (const [i, { name, bytes }] of sorted.entries()) {
    const data = typeof bytes === "function" ? bytes() : bytes;
    if (data.byteLength !== lengths[i]) {
      const message = `takes ${lengths[i]} bytes, got ${data.byteLength}`;
      throw tensorError("safetensors", name, message);
    }
    yield data;
  }
}

/** The length and the JSON text, padded with spaces so that the data starts at a multiple of 8. */
function encodeHead(json: string): Uint8Array {
  const text = new TextEncoder().encode(json);
  const padded = Math.ceil(text.byteLength / 8) * 8;
  if (padded > maxHeaderLength) {
    throw new ValueError(`safetensors: the header would take ${padded} bytes`);
  }
  const head = new Uint8Array(lengthBytes + padded).fill(0x20);
  new DataView(head.buffer).setBigUint64(0, BigInt(padded), true);
  head.set(text, lengthBytes);
  return head;
}

/** Writes a safetensors file; an error leaves what was at `path` before. */
export function writeSafetensors(
  path: string,
  inputs: Iterable<SafetensorsInput>,
  metadata: Readonly<Record<string, string>> = {},
): void {
  writeFileAtomically(path, fileParts(inputs, metadata));
}

/** Builds the bytes of a safetensors file in memory. */
export function encodeSafetensors(
  inputs: Iterable<SafetensorsInput>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  const parts = [...fileParts(inputs, metadata)];
  const total = parts.reduce((sum, part) => sum + part.byteLength, 0);
  const file = allocateBytes(total, "safetensors");
  let position = 0;
  for (const part of parts) {
    file.set(part, position);
    position += part.byteLength;
  }
  return file;
}
