// Opens the recorded results: a folder or a tar archive of safetensors files, and their cases.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";

/** One array of a safetensors file: its bytes lie at `begin`..`end` of the file. */
interface Entry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

/** A recorded array: raw little-endian bytes and the shape they are stored in. */
export interface Stored {
  dtype: string;
  shape: number[];
  bytes: Uint8Array;
}

/** A safetensors file of recorded cases. */
export class Fixture<Case> {
  readonly metadata: Readonly<Record<string, string>>;
  readonly cases: readonly Case[];
  private readonly entries: Record<string, Entry>;
  private readonly bytes: Uint8Array;
  private readonly dataStart: number;

  constructor(path: string) {
    this.bytes = readFileSync(path);
    const view = new DataView(this.bytes.buffer, this.bytes.byteOffset);
    const headerLength = Number(view.getBigUint64(0, true));
    this.dataStart = 8 + headerLength;
    const header = new TextDecoder().decode(this.bytes.subarray(8, this.dataStart));
    const { __metadata__, ...entries } = JSON.parse(header);
    this.metadata = __metadata__;
    this.cases = JSON.parse(__metadata__.cases);
    this.entries = entries;
  }

  /** The array under `key`, with bytes of its own. */
  read(key: string): Stored {
    const entry = this.entries[key];
    if (!entry) throw new Error(`no array named ${key}`);
    const [begin, end] = entry.data_offsets;
    const bytes = this.bytes.subarray(this.dataStart + begin, this.dataStart + end);
    return { dtype: entry.dtype, shape: entry.shape, bytes: new Uint8Array(bytes) };
  }
}

/** An opened set of recordings; `close` removes what was unpacked. */
export interface Recordings {
  root: string;
  close(): void;
}

/** Opens `path`: a folder that holds `ops/`, that `ops/` folder itself, or a tar archive. */
export function openRecordings(path: string): Recordings {
  const full = resolve(path);
  if (!existsSync(full)) throw new Error(`--fixtures: ${path} does not exist`);
  if (statSync(full).isDirectory()) return { root: findRoot(full), close: () => undefined };
  const folder = mkdtempSync(join(tmpdir(), "cresset-parity-"));
  const close = () => rmSync(folder, { recursive: true, force: true });
  const { status, stderr } = spawnSync("tar", ["-xf", full, "-C", folder], { encoding: "utf8" });
  if (status !== 0) {
    close();
    throw new Error(`--fixtures: cannot unpack ${path}: ${stderr}`);
  }
  return { root: findRoot(folder), close };
}

function findRoot(folder: string): string {
  if (existsSync(join(folder, "ops"))) return folder;
  if (basename(folder) === "ops") return dirname(folder);
  const inner = readdirSync(folder).find((name) => existsSync(join(folder, name, "ops")));
  if (inner) return join(folder, inner);
  throw new Error(`--fixtures: no ops/ folder in ${folder}`);
}

/** The names of the safetensors files of a folder, without the extension, sorted. */
export function fixtureNames(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const extension = ".safetensors";
  return readdirSync(folder)
    .filter((name) => name.endsWith(extension))
    .map((name) => name.slice(0, -extension.length))
    .sort();
}
