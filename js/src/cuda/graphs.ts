// CUDA graphs: a row of kernels captured once and replayed with one call.
import { grad as gradients } from "../autograd.js";
import { ShapeError, ValueError } from "../errors.js";
import { collect } from "../memory.js";
import * as ops from "../ops.gen.js";
import { Tensor } from "../tensor.js";
import { synchronize } from "./device.js";
import { currentStream, Stream, withStream } from "./streams.js";

const registry = new FinalizationRegistry<number>((id) => ops._cudaGraphDestroy(id));

/** The memory of a graph, for others that never run at the same time; from CUDAGraph.pool(). */
export type GraphPool = CUDAGraph;

/**
 * Work captured for replay. While it is captured nothing runs; each replay() runs all of it on the
 * tensors it was captured with: write new inputs into them with copy_().
 */
export class CUDAGraph {
  private id = 0;

  /** Starts to capture what goes to the current stream, which may not be the default one. */
  captureBegin(options: { pool?: GraphPool | null } = {}): void {
    this.reset();
    this.id = ops._cudaGraphBegin(options.pool?.id ?? 0);
    registry.register(this, this.id, this);
  }
  /** Ends the capture; throws where something in it could not be captured. */
  captureEnd(): void {
    const id = this.captured("captureEnd");
    try {
      ops._cudaGraphEnd(id, true);
    } catch (error) {
      this.reset();
      throw error;
    }
  }
  /** Ends the capture and forgets it. */
  captureAbort(): void {
    if (!this.id) return;
    registry.unregister(this);
    ops._cudaGraphEnd(this.id, false);
    this.id = 0;
  }
  /** Runs the captured work on the current stream. */
  replay(): void {
    ops._cudaGraphReplay(this.captured("replay"));
  }
  /** Frees the graph, and its memory once the tensors in it are gone. */
  reset(): void {
    if (!this.id) return;
    registry.unregister(this);
    ops._cudaGraphDestroy(this.id);
    this.id = 0;
  }
  /** For the `pool` option of graphs that may share this one's memory. */
  pool(): GraphPool {
    return this;
  }
  [Symbol.dispose](): void {
    this.reset();
  }
  /** Number of the graph in the core. */
  get _id(): number {
    return this.captured("CUDAGraph");
  }
  private captured(op: string): number {
    if (!this.id) throw new ValueError(`${op}: the graph was reset or never captured`);
    return this.id;
  }
}

/** Whether this thread captures a graph. */
export function isCurrentStreamCapturing(): boolean {
  return ops._cudaGraphCapturing();
}

export interface GraphOptions {
  /** Memory of another graph, where the two never run at the same time. */
  pool?: GraphPool | null;
  /** The stream to capture; by default one of its own. */
  stream?: Stream | null;
}

/**
 * Captures what `fn` does: `const g = torch.cuda.graph(() => { y.copy_(model(x)); })`, or into a
 * given graph: `torch.cuda.graph(g, fn)`. Run `fn` a few times before, on a stream of its own, so
 * that libraries have made their plans. An error in `fn` ends the capture and passes on.
 */
export function graph(fn: () => void, options?: GraphOptions): CUDAGraph;
export function graph(target: CUDAGraph, fn: () => void, options?: GraphOptions): CUDAGraph;
export function graph(...args: unknown[]): CUDAGraph {
  const given = args[0] instanceof CUDAGraph ? args[0] : null;
  const [fn, options = {}] = (given ? args.slice(1) : args) as [() => void, GraphOptions?];
  const target = given ?? new CUDAGraph();
  synchronize();
  collect();
  withStream(options.stream ?? new Stream(), () => {
    target.captureBegin({ pool: options.pool ?? null });
    try {
      const result: unknown = fn();
      if (result instanceof Promise) {
        throw new ValueError(
          "graph: the function returned a promise; a capture ends with the call",
        );
      }
    } catch (error) {
      target.captureAbort();
      throw error;
    }
    target.captureEnd();
  });
  return target;
}

type TensorFn = (...inputs: Tensor[]) => Tensor | Tensor[];

/** What makeGraphedCallables takes: a function, or a module with its parameters. */
export type Graphable = TensorFn & { parameters?: () => Iterable<Tensor> };

export interface GraphedOptions {
  /** Calls before the capture, in which libraries make their plans (default 3). */
  numWarmupIters?: number;
  pool?: GraphPool | null;
}

const listOf = (x: Tensor | Tensor[]): Tensor[] => (x instanceof Tensor ? [x] : x);

function checkInputs(inputs: readonly Tensor[], samples: readonly Tensor[]): void {
  const fits = (x: Tensor, i: number) => {
    const s = samples[i];
    return s && x.dtype === s.dtype && x.shape.join() === s.shape.join();
  };
  if (inputs.length !== samples.length || !inputs.every(fits)) {
    const want = samples.map((s) => `[${s.shape.join(", ")}]`).join(", ");
    const got = inputs.map((s) => `[${s.shape.join(", ")}]`).join(", ");
    throw new ShapeError(`graphed function: expected inputs of shapes ${want}, got ${got}`);
  }
}

/** The captured forward and backward of one function, and the tensors they work on. */
interface Captured {
  forward: CUDAGraph;
  backward: CUDAGraph | null;
  /** Whether the function gave a tensor and not a list. */
  single: boolean;
  inputs: Tensor[];
  outputs: Tensor[];
  gradOutputs: Tensor[];
  gradInputs: (Tensor | null)[];
}

// Gradients of the outputs that have one, by the inputs that want one; null for the others.
function gradientsOf(outputs: Tensor[], gradOutputs: Tensor[], inputs: Tensor[]) {
  const roots = outputs.filter((y) => y.requiresGrad);
  const wanted = inputs.filter((x) => x.requiresGrad);
  const found = gradients(roots, wanted, { gradOutputs, allowUnused: true });
  return inputs.map((x) => (x.requiresGrad ? (found[wanted.indexOf(x)] ?? null) : null));
}

function warmUp(fn: Graphable, inputs: Tensor[], all: Tensor[], times: number): void {
  for (let i = 0; i < times; i++) {
    const outputs = listOf(fn(...inputs));
    const roots = outputs.filter((y) => y.requiresGrad);
    if (roots.length > 0)
      gradientsOf(
        outputs,
        roots.map((y) => ops.onesLike(y)),
        all,
      );
  }
}

function capture(fn: Graphable, samples: readonly Tensor[], options: GraphedOptions): Captured {
  const inputs = samples.map((s) => ops.clone(s.detach()).requiresGrad_(s.requiresGrad));
  const all = [...inputs, ...(fn.parameters?.() ?? [])];
  const side = new Stream();
  side.waitStream(currentStream());
  withStream(side, () => warmUp(fn, inputs, all, options.numWarmupIters ?? 3));
  currentStream().waitStream(side);
  let result: Tensor | Tensor[] = [];
  const forward = graph(() => void (result = fn(...inputs)), {
    pool: options.pool ?? null,
    stream: side,
  });
  const outputs = listOf(result);
  const roots = outputs.filter((y) => y.requiresGrad);
  const gradOutputs = roots.map((y) => ops.zerosLike(y.detach()));
  let gradInputs: (Tensor | null)[] = all.map(() => null);
  const backward =
    roots.length === 0
      ? null
      : graph(() => void (gradInputs = gradientsOf(outputs, gradOutputs, all)), {
          pool: options.pool ?? forward.pool(),
          stream: side,
        });
  const single = !Array.isArray(result);
  return { forward, backward, single, inputs, outputs, gradOutputs, gradInputs };
}

/**
 * A function with the same inputs and outputs whose forward and backward each replay a graph. The
 * sample inputs fix shapes and which inputs want gradients. Outputs are overwritten by the next
 * call: clone what is to stay. A whole training step can also be captured with graph().
 */
export function makeGraphedCallables<F extends Graphable>(
  fn: F,
  sampleArgs: readonly Tensor[],
  options: GraphedOptions = {},
): (...inputs: Parameters<F>) => ReturnType<F> {
  const c = capture(fn, sampleArgs, options);
  const requires = c.outputs.map((y) => Number(y.requiresGrad));
  const outputs = c.outputs.map((y) => y.detach());
  const call = (...inputs: Tensor[]): unknown => {
    checkInputs(inputs, c.inputs);
    const results = ops._cudaGraphedCall(
      c.forward._id,
      c.backward?._id ?? 0,
      [...inputs, ...(fn.parameters?.() ?? [])],
      c.inputs,
      outputs,
      requires,
      c.gradOutputs,
      c.gradInputs,
    );
    return c.single ? results[0] : results;
  };
  return call as (...inputs: Parameters<F>) => ReturnType<F>;
}
