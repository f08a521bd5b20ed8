// Saving and loading tensors: `saveFile`/`loadFile` for safetensors, `save`/`load` for nested data.
import { CressetError, DTypeError, NotImplementedError, TypeError_, ValueError } from "./errors.js";
import {
  encodeSafetensors,
  SafetensorsReader,
  writeSafetensors,
  type SafetensorsDType,
  type SafetensorsInput,
} from "./safetensors.js";
import { openSource } from "./files.js";

/** What this module needs to know of a tensor class `T`. */
export interface TensorCodec<T extends object> {
  isTensor(value: unknown): value is T;
  /** The dtype by PyTorch's name, such as "float32". */
  dtype(tensor: T): string;
  shape(tensor: T): readonly number[];
  /** The elements in row-major order, little-endian; bools as one byte of 0 or 1. */
  toBytes(tensor: T): Uint8Array;
  /** Makes a tensor that copies or owns `bytes`, which are aligned. */
  fromBytes(dtype: string, shape: readonly number[], bytes: Uint8Array<ArrayBuffer>): T;
}

/** Tensors by name, as a plain object or a map. */
export type NamedTensors<T> = Readonly<Record<string, T>> | ReadonlyMap<string, T>;

export type Metadata = Readonly<Record<string, string>>;

const formatNames: Readonly<Record<string, SafetensorsDType>> = {
  bool: "BOOL",
  uint8: "U8",
  int8: "I8",
  int16: "I16",
  int32: "I32",
  int64: "I64",
  float16: "F16",
  bfloat16: "BF16",
  float32: "F32",
  float64: "F64",
  complex64: "C64",
};
const dtypeNames = new Map(Object.entries(formatNames).map(([name, code]) => [code, name]));
const treeKey = "cresset.tree";

/** A JSON value that stands for nested data; tensors and other special values are tagged lists. */
type Tree = null | boolean | number | string | readonly [string, ...Tree[]] | readonly Tree[];

function isPlainObject(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Turns nested data into a tree, and collects its tensors under the names of their places. */
class TreeWriter<T extends object> {
  readonly tensors = new Map<string, T>();
  private readonly names = new Map<T, string>();
  private readonly open = new Set<object>();

  constructor(private readonly codec: TensorCodec<T>) {}

  write(value: unknown, path: string): Tree {
    if (value === undefined) return ["undefined"];
    if (value === null || typeof value === "boolean" || typeof value === "string") return value;
    if (typeof value === "bigint") return ["bigint", String(value)];
    if (typeof value === "number") {
      return Number.isFinite(value) && !Object.is(value, -0)
        ? value
        : ["number", Object.is(value, -0) ? "-0" : String(value)];
    }
    if (this.codec.isTensor(value)) return ["tensor", this.nameOf(value, path)];
    if (typeof value === "object") return this.writeObject(value, path);
    throw new TypeError_(`save: expected data at ${path || "the root"}, got a ${typeof value}`);
  }

  private writeObject(value: object, path: string): Tree {
    if (this.open.has(value)) throw new ValueError(`save: ${path} contains itself`);
    this.open.add(value);
    const child = (key: unknown) => (path === "" ? String(key) : `${path}.${String(key)}`);
    const pairs = (entries: Iterable<[unknown, unknown]>): Tree[] =>
      [...entries].map(([key, item]) => [
        this.write(key, child(key)),
        this.write(item, child(key)),
      ]);
    let tree: Tree;
    if (Array.isArray(value))
      tree = ["list", ...value.map((item, i) => this.write(item, child(i)))];
    else if (value instanceof Map) tree = ["map", ...pairs(value.entries())];
    else if (isPlainObject(value)) tree = ["object", ...pairs(Object.entries(value))];
    else {
      const kind = value.constructor?.name ?? "object";
      throw new TypeError_(
        `save: expected tensors, numbers, strings, lists, maps and plain objects, ` +
          `got a ${kind} at ${path || "the root"}`,
      );
    }
    this.open.delete(value);
    return tree;
  }

  private nameOf(tensor: T, path: string): string {
    let name = this.names.get(tensor);
    if (name === undefined) {
      name = path === "" ? "tensor" : path;
      for (let i = 1; this.tensors.has(name); i++) name = `${path}#${i}`;
      this.names.set(tensor, name);
      this.tensors.set(name, tensor);
    }
    return name;
  }
}

/** The inverse of `TreeWriter`; `tensor` gives the tensor of a name. */
function readTree(tree: Tree, tensor: (name: string) => unknown): unknown {
  if (!Array.isArray(tree)) return tree;
  const [tag, ...items] = tree as readonly Tree[];
  const pairs = () =>
    items.map((item) => {
      const [key, value] = item as readonly [Tree, Tree];
      return [readTree(key, tensor), readTree(value, tensor)] as const;
    });
  switch (tag) {
    case "undefined":
      return undefined;
    case "bigint":
      return BigInt(items[0] as string);
    case "number":
      return Number(items[0]);
    case "tensor":
      return tensor(items[0] as string);
    case "list":
      return items.map((item) => readTree(item, tensor));
    case "map":
      return new Map(pairs());
    case "object":
      return Object.fromEntries(pairs());
    default:
      throw new ValueError(`load: unknown tag ${JSON.stringify(tag)} in the saved structure`);
  }
}

/** Says what a file that is no safetensors file looks like, for those that users try most often. */
function refuseOtherFormats(file: string | Uint8Array): void {
  const source = openSource(file);
  try {
    const head = new Uint8Array(Math.min(source.size, 4));
    source.readInto(head, 0);
    if (head[0] === 0x50 && head[1] === 0x4b) {
      throw new NotImplementedError(
        `load: ${source.label} looks like a zip file, as torch.save writes it; ` +
          `save it with safetensors.torch.save_file and load that`,
      );
    }
  } finally {
    source.close();
  }
}

/** The saving and loading functions for the tensor class that `codec` describes. */
export class Serializer<T extends object> {
  constructor(private readonly codec: TensorCodec<T>) {}

  /** Writes named tensors to a safetensors file, whole or not at all. */
  readonly saveFile = (tensors: NamedTensors<T>, path: string, metadata: Metadata = {}): void =>
    writeSafetensors(path, this.inputsOf(tensors), metadata);

  /** Reads all tensors of a safetensors file (a path or its bytes), or only those in `names`. */
  readonly loadFile = (file: string | Uint8Array, names?: readonly string[]): Record<string, T> => {
    using reader = new SafetensorsReader(file);
    const wanted = names ?? reader.names;
    return Object.fromEntries(wanted.map((name) => [name, this.readTensor(reader, name)]));
  };

  /** The bytes of a safetensors file with the named tensors, for hosts without files. */
  readonly toSafetensors = (tensors: NamedTensors<T>, metadata: Metadata = {}): Uint8Array =>
    encodeSafetensors(this.inputsOf(tensors), metadata);

  /**
   * Saves nested data (plain objects, lists, maps, numbers, strings, tensors) to one file. The file
   * is a safetensors file whose metadata hold the structure; a tensor met twice is stored once.
   */
  readonly save = (data: unknown, path: string): void => {
    const writer = new TreeWriter(this.codec);
    const tree = JSON.stringify(writer.write(data, ""));
    writeSafetensors(path, this.inputsOf(writer.tensors), { [treeKey]: tree });
  };

  /** Loads what `save` wrote; any other safetensors file comes back as its named tensors. */
  readonly load = (file: string | Uint8Array): unknown => {
    refuseOtherFormats(file);
    using reader = new SafetensorsReader(file);
    const tensors = new Map(reader.names.map((name) => [name, this.readTensor(reader, name)]));
    const tree = reader.header.metadata.get(treeKey);
    if (tree === undefined) return Object.fromEntries(tensors);
    const tensorOf = (name: string) => {
      const tensor = tensors.get(name);
      if (tensor) return tensor;
      throw new ValueError(`load: the structure names a missing tensor ${JSON.stringify(name)}`);
    };
    try {
      return readTree(JSON.parse(tree) as Tree, tensorOf);
    } catch (cause) {
      if (cause instanceof CressetError) throw cause;
      throw Object.assign(new ValueError("load: the saved structure is damaged"), { cause });
    }
  };

  private *inputsOf(tensors: NamedTensors<T>): Generator<SafetensorsInput> {
    if (typeof tensors !== "object" || tensors === null) {
      throw new TypeError_(`saveFile: expected named tensors, got ${typeof tensors}`);
    }
    const entries = tensors instanceof Map ? tensors.entries() : Object.entries(tensors);
    for (const [name, tensor] of entries as Iterable<[string, T]>) {
      const quoted = JSON.stringify(name);
      if (!this.codec.isTensor(tensor)) {
        throw new TypeError_(`saveFile: expected a tensor for ${quoted}, got ${typeof tensor}`);
      }
      const dtype = formatNames[this.codec.dtype(tensor)];
      if (dtype === undefined) {
        throw new DTypeError(
          `saveFile: safetensors cannot hold ${this.codec.dtype(tensor)} (${quoted})`,
        );
      }
      const bytes = () => this.codec.toBytes(tensor);
      yield { name, dtype, shape: this.codec.shape(tensor), bytes };
    }
  }

  private readTensor(reader: SafetensorsReader, name: string): T {
    const { dtype, shape } = reader.entry(name);
    const known = dtypeNames.get(dtype);
    if (known !== undefined) return this.codec.fromBytes(known, shape, reader.read(name));
    throw new DTypeError(`loadFile: no dtype for ${dtype} of tensor ${JSON.stringify(name)}`);
  }
}
