// Random-access byte sources (memory, files of any size) and atomic file writing.
import { NotImplementedError, OutOfMemoryError, ValueError } from "./errors.js";

/** Bytes that can be read by position; positions may exceed 32 bits. */
export interface ByteSource {
  /** What messages call the source: its path, or "bytes". */
  readonly label: string;
  readonly size: number;
  /** Fills `target` with the bytes from `position` on. */
  readInto(target: Uint8Array, position: number): void;
  close(): void;
}

// One system call moves less than 2 GiB, so longer transfers go in pieces.
const maxTransfer = 2 ** 30;

/** Node's file module; fetched on use, for a browser has none when it imports Cresset. */
export function nodeFs(): typeof import("node:fs") {
  const fs = globalThis.process?.getBuiltinModule?.("node:fs");
  if (fs) return fs;
  throw new NotImplementedError("files: expected Node 20.16 or later (or Bun, Deno); pass bytes");
}

/** Allocates `length` bytes, or throws an `OutOfMemoryError` that names what they are for. */
export function allocateBytes(length: number, purpose: string): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(length);
  } catch (cause) {
    const message = `${purpose}: could not allocate ${length} bytes`;
    throw Object.assign(new OutOfMemoryError(message), { cause });
  }
}

class MemorySource implements ByteSource {
  readonly label = "bytes";
  readonly size: number;

  constructor(private readonly bytes: Uint8Array) {
    this.size = bytes.byteLength;
  }

  readInto(target: Uint8Array, position: number): void {
    target.set(this.bytes.subarray(position, position + target.byteLength));
  }

  close(): void {}
}

class FileSource implements ByteSource {
  readonly size: number;
  private descriptor: number | null;

  constructor(readonly label: string) {
    const fs = nodeFs();
    this.descriptor = fs.openSync(label, "r");
    this.size = fs.fstatSync(this.descriptor).size;
  }

  readInto(target: Uint8Array, position: number): void {
    if (this.descriptor === null) throw new ValueError(`${this.label}: the file was closed`);
    const fs = nodeFs();
    for (let done = 0; done < target.byteLength;) {
      const length = Math.min(maxTransfer, target.byteLength - done);
      const got = fs.readSync(this.descriptor, target, done, length, position + done);
      if (got === 0) {
        const wanted = position + target.byteLength;
        throw new ValueError(`${this.label}: expected ${wanted} bytes, the file ends before`);
      }
      done += got;
    }
  }

  close(): void {
    if (this.descriptor !== null) nodeFs().closeSync(this.descriptor);
    this.descriptor = null;
  }
}

/** Opens a path or wraps bytes; a file stays open until `close()`. */
export function openSource(source: string | Uint8Array): ByteSource {
  return typeof source === "string" ? new FileSource(source) : new MemorySource(source);
}

/**
 * Writes a file as a whole or not at all: the chunks go to a temporary file beside `path`,
 * which takes its name only once all of them are on disk.
 */
export function writeFileAtomically(path: string, chunks: Iterable<Uint8Array>): void {
  const fs = nodeFs();
  const unique = `${process.pid.toString(36)}${Math.random().toString(36).slice(2, 10)}`;
  const temporary = `${path}.${unique}.tmp`;
  const descriptor = fs.openSync(temporary, "wx", 0o666);
  try {
    try {
      for (const chunk of chunks) {
        for (let done = 0; done < chunk.byteLength;) {
          const length = Math.min(maxTransfer, chunk.byteLength - done);
          done += fs.writeSync(descriptor, chunk, done, length);
        }
      }
      fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
    fs.renameSync(temporary, path);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
}
