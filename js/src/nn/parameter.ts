// nn.Parameter and nn.Buffer: tensors that a module owns.
import { checkTensor } from "../frame.js";
import * as ops from "../ops.gen.js";
import { formatTensor } from "../print_tensor.js";
import { Tensor } from "../tensor.js";
import { keep } from "../tidy.js";

// A tensor object over the memory of `data`, of another class and without history; no tidy frees
// it.
function owned(name: string, data: Tensor | undefined, prototype: object): Tensor {
  if (data !== undefined && data !== null) checkTensor(data, name, "data");
  const t = ops.detach(data ?? ops.empty([0]));
  return keep(Object.setPrototypeOf(t, prototype) as Tensor);
}

/** A tensor that a module trains: assigned to a field of a module, it is one of parameters(). */
export class Parameter extends Tensor {
  /** Shares the memory of `data`, which may be an initial value of any origin. */
  constructor(data?: Tensor, requiresGrad = true) {
    super();
    const parameter = owned("Parameter", data, new.target.prototype) as Parameter;
    if (requiresGrad) parameter.requiresGrad_(true);
    return parameter;
  }
  override toString(): string {
    return formatTensor(this, true);
  }
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return formatTensor(this, true);
  }
}

/** A tensor that belongs to a module's state without being trained, such as a running mean. */
export class Buffer extends Tensor {
  /** Whether stateDict() has it. */
  readonly persistent!: boolean;
  constructor(data?: Tensor, persistent = true) {
    super();
    const buffer = owned("Buffer", data, new.target.prototype) as Buffer;
    Object.defineProperty(buffer, "persistent", { value: persistent });
    return buffer;
  }
}
