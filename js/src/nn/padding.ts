// Padding layers.
import type { Tensor } from "../tensor.js";
import { float } from "../frame.js";
import { py, tuple } from "./bind.js";
import { functional } from "./functional_lookup.js";
import { Module } from "./module.js";

/** Rows to add before and after each dim, last dim first; one number for all sides. */
export type Padding = number | readonly number[];

const pad = functional("pad");

/** What all paddings share; `rank` counts the padded dims. */
abstract class Pad extends Module {
  readonly padding: number[];
  constructor(
    padding: Padding,
    rank: number,
    protected readonly mode: "constant" | "reflect" | "replicate" | "circular",
    readonly value: number = 0,
  ) {
    super();
    this.padding = tuple(padding, 2 * rank, new.target.name, "padding");
  }
  forward(input: Tensor): Tensor {
    if (this.mode === "constant") return pad(input, this.padding, this.mode, this.value);
    return pad(input, this.padding, this.mode);
  }
  override extraRepr(): string {
    return py(this.padding);
  }
}

abstract class ConstantPad extends Pad {
  constructor(padding: Padding, rank: number, value: number) {
    super(padding, rank, "constant", float(value, new.target.name, "value"));
  }
  override extraRepr(): string {
    return `padding=${py(this.padding)}, value=${py(this.value)}`;
  }
}
/** Adds `value` around the last dim. */
export class ConstantPad1d extends ConstantPad {
  constructor(padding: Padding, value: number) {
    super(padding, 1, value);
  }
}
/** Adds `value` around the last two dims. */
export class ConstantPad2d extends ConstantPad {
  constructor(padding: Padding, value: number) {
    super(padding, 2, value);
  }
}
/** Adds `value` around the last three dims. */
export class ConstantPad3d extends ConstantPad {
  constructor(padding: Padding, value: number) {
    super(padding, 3, value);
  }
}
/** Adds zeros around the last dim. */
export class ZeroPad1d extends Pad {
  constructor(padding: Padding) {
    super(padding, 1, "constant");
  }
}
/** Adds zeros around the last two dims. */
export class ZeroPad2d extends Pad {
  constructor(padding: Padding) {
    super(padding, 2, "constant");
  }
}
/** Adds zeros around the last three dims. */
export class ZeroPad3d extends Pad {
  constructor(padding: Padding) {
    super(padding, 3, "constant");
  }
}
/** Mirrors the last dim at its ends. */
export class ReflectionPad1d extends Pad {
  constructor(padding: Padding) {
    super(padding, 1, "reflect");
  }
}
/** Mirrors the last two dims at their ends. */
export class ReflectionPad2d extends Pad {
  constructor(padding: Padding) {
    super(padding, 2, "reflect");
  }
}
/** Mirrors the last three dims at their ends. */
export class ReflectionPad3d extends Pad {
  constructor(padding: Padding) {
    super(padding, 3, "reflect");
  }
}
/** Repeats the ends of the last dim. */
export class ReplicationPad1d extends Pad {
  constructor(padding: Padding) {
    super(padding, 1, "replicate");
  }
}
/** Repeats the ends of the last two dims. */
export class ReplicationPad2d extends Pad {
  constructor(padding: Padding) {
    super(padding, 2, "replicate");
  }
}
/** Repeats the ends of the last three dims. */
export class ReplicationPad3d extends Pad {
  constructor(padding: Padding) {
    super(padding, 3, "replicate");
  }
}
/** Continues the last dim with its other end. */
export class CircularPad1d extends Pad {
  constructor(padding: Padding) {
    super(padding, 1, "circular");
  }
}
/** Continues the last two dims with their other ends. */
export class CircularPad2d extends Pad {
  constructor(padding: Padding) {
    super(padding, 2, "circular");
  }
}
/** Continues the last three dims with their other ends. */
export class CircularPad3d extends Pad {
  constructor(padding: Padding) {
    super(padding, 3, "circular");
  }
}
