// What is measured under each name, against whom, and within which limit.
import type { ProgramName } from "./library.js";

/** A measured row; `ratio` above 1 means that Cresset is better. */
export interface Result {
  name: string;
  unit: string;
  value: number;
  peer?: string;
  peerValue?: number;
  ratio?: number;
  limit?: number;
}

export type Unit = "ns" | "us" | "ms";

/** One row of a table; `id` is its name in the libraries' files where that differs. */
export interface RowPlan {
  name: string;
  id?: string;
  /** The most it may take, in the table's unit. */
  limit?: number;
  /** Where it is not that of the table. */
  unit?: Unit;
  /** How many of the thing that the name says one call does. */
  per?: number;
  /** The peer whose time is the limit: nothing built on it can be faster. */
  limitBy?: ProgramName;
  /** How many times the limiting peer's time it may take; 1 unless given. */
  limitTimes?: number;
  /** Where the table's number is too small. */
  rounds?: number;
  /** Unless given, as the table. */
  sameCore?: boolean;
  /** The libraries follow each other at once: for work that leaves no threads behind that spin. */
  noPause?: boolean;
}

export interface TablePlan {
  unit: Unit;
  rounds: number;
  /** Which build of Cresset is measured; the native one by default. */
  subject?: ProgramName;
  peers: ProgramName[];
  /** For work of one thread: all libraries of a round run on one core, each round on another. */
  sameCore?: boolean;
  rows: RowPlan[];
}

/** Rows of the time that the host takes for a launch: its core is kept awake. */
const launches = { rounds: 30, sameCore: true, noPause: true };

/** The budgets of `overhead` are those that the architecture promises for a call of 4 elements. */
export const tables: Record<string, TablePlan> = {
  overhead: {
    unit: "ns",
    rounds: 15,
    peers: ["pytorch", "tfjs", "jax"],
    sameCore: true,
    rows: [
      { name: "add", limit: 400 },
      { name: "add.grad", limit: 1000 },
      { name: "mulsum.backward" },
    ],
  },
  "cpu-ops": {
    unit: "ms",
    rounds: 9,
    peers: ["pytorch", "oneDnn"],
    rows: [
      { name: "add", id: "ops.add" },
      { name: "exp" },
      { name: "tanh" },
      { name: "gelu" },
      { name: "sum", rounds: 15 },
      { name: "softmax" },
      { name: "layerNorm" },
      { name: "matmul.256", limitBy: "oneDnn", rounds: 15 },
      { name: "matmul.1024", limitBy: "oneDnn" },
      { name: "conv2d.forward" },
      { name: "conv2d.backward" },
    ],
  },
  train: {
    unit: "ms",
    rounds: 11,
    peers: ["jax", "tfjs", "pytorch"],
    rows: [{ name: "mlp.sgd" }, { name: "cnn.step" }],
  },
  // The limits are what CUDA alone takes for the same launches or the same bytes.
  cuda: {
    unit: "us",
    rounds: 5,
    subject: "oursCuda",
    peers: ["pytorchCuda", "cuda"],
    rows: [
      { ...launches, name: "add.enqueue", limitBy: "cuda", limitTimes: 1.25 },
      { ...launches, name: "matmul.64", limitBy: "cuda", limitTimes: 1.2 },
      { name: "mlp.adam", limit: 250 },
      { name: "mlp.graph", limitBy: "pytorchCuda" },
      ...["add", "exp", "gelu", "sum", "softmax", "layerNorm"].map((name) => ({
        name: `${name}.1GiB`,
        limitBy: "cuda" as const,
        limitTimes: 1 / 0.85,
      })),
      { name: "matmul.8192.bf16", limitBy: "pytorchCuda", limitTimes: 1 / 0.97, rounds: 25 },
      { name: "cnn.epoch", limitBy: "pytorchCuda", limitTimes: 0.5 },
    ],
  },
  wasm: {
    unit: "ms",
    rounds: 9,
    subject: "wasm",
    peers: ["tfjs", "jax", "tfjsCpu"],
    sameCore: true,
    rows: [
      { name: "matmul.512" },
      { name: "matmul.1024" },
      { name: "mlp.sgd", limit: 1.2 },
      { name: "cnn.step" },
      { name: "add in tidy", id: "add.tidy", unit: "ns", per: 1000, limit: 200 },
    ],
  },
  "wasm-threads": {
    unit: "ms",
    rounds: 9,
    subject: "wasmThreads",
    peers: ["wasm"],
    rows: [{ name: "matmul.512" }, { name: "matmul.1024" }],
  },
};
