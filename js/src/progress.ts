// Progress of a long loop: a bar in a terminal, a line every few seconds anywhere else.

/** Where progress is written; `process.stdout` fits. */
export interface ProgressStream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface ProgressOptions {
  /** What is going on, such as "epoch 1/5". */
  label?: string;
  /** What is counted, such as "images" (default "items"). */
  unit?: string;
  /** Default: standard output, or the console where there is none. */
  stream?: ProgressStream;
  /** Seconds between lines where the output is no terminal (default 5). */
  interval?: number;
  /** The time in milliseconds; for tests. */
  clock?: () => number;
}

/** A number to show, or a function that gives it and is called only when a line is drawn. */
export type ProgressValue = number | (() => number);

const barWidth = 24;
const terminalInterval = 0.1;

/** Follows a loop over `total` items; call `advance` as they are done and `finish` at the end. */
export class Progress {
  private readonly label: string;
  private readonly unit: string;
  private readonly stream: ProgressStream;
  private readonly interval: number;
  private readonly clock: () => number;
  private readonly begin: number;
  private lastDrawn: number;
  private done = 0;
  private values: Readonly<Record<string, ProgressValue>> = {};

  constructor(
    readonly total: number,
    options: ProgressOptions = {},
  ) {
    this.label = options.label ?? "";
    this.unit = options.unit ?? "items";
    this.stream = options.stream ?? defaultStream();
    this.interval = this.stream.isTTY ? terminalInterval : (options.interval ?? 5);
    this.clock = options.clock ?? (() => performance.now());
    this.begin = this.lastDrawn = this.clock();
  }

  /** Counts `items` more as done; `values` (such as `{ loss }`) are shown beside the count. */
  advance(items = 1, values: Readonly<Record<string, ProgressValue>> = {}): void {
    this.done += items;
    this.values = { ...this.values, ...values };
    const now = this.clock();
    if (now - this.lastDrawn < this.interval * 1000) return;
    this.lastDrawn = now;
    if (this.stream.isTTY) this.redraw(this.line(true));
    else this.stream.write(`${this.line(false)}\n`);
  }

  /** Draws the last line, with the time taken; the values are the last ones unless given. */
  finish(values: Readonly<Record<string, ProgressValue>> = {}): void {
    this.values = { ...this.values, ...values };
    const seconds = (this.clock() - this.begin) / 1000;
    const text = this.join([this.label, ...this.facts(), `in ${duration(seconds)}`]);
    if (this.stream.isTTY) this.redraw(text);
    this.stream.write(this.stream.isTTY ? "\n" : `${text}\n`);
  }

  private line(withBar: boolean): string {
    const share = this.total > 0 ? Math.min(1, this.done / this.total) : 1;
    const filled = Math.round(share * barWidth);
    const bar = withBar ? `${"█".repeat(filled)}${"░".repeat(barWidth - filled)}` : "";
    const percent = `${Math.floor(share * 100)}%`.padStart(4);
    const seconds = (this.clock() - this.begin) / 1000;
    const left = share > 0 ? `${duration((seconds / share) * (1 - share))} left` : "";
    return this.join([this.label, bar, percent, ...this.facts(), left]);
  }

  private facts(): string[] {
    const seconds = (this.clock() - this.begin) / 1000;
    const rate = seconds > 0 ? this.done / seconds : 0;
    const values = Object.entries(this.values).map(
      ([name, value]) => `${name} ${significant(typeof value === "function" ? value() : value)}`,
    );
    return [`${perSecond(rate)} ${this.unit}/s`, ...values];
  }

  private join(parts: string[]): string {
    return parts.filter((part) => part !== "").join("  ");
  }

  /** Replaces the terminal's line; a longer text than it holds would leave its head behind. */
  private redraw(text: string): void {
    this.stream.write(`\r\u001b[K${text.slice(0, (this.stream.columns || 80) - 1)}`);
  }
}

function defaultStream(): ProgressStream {
  return (
    globalThis.process?.stdout ?? { write: (text: string) => console.log(text.replace(/\n$/, "")) }
  );
}

/** Four significant digits, enough to follow a loss. */
function significant(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return size < 10 ? value.toFixed(4) : value.toPrecision(4);
}

function perSecond(rate: number): string {
  return rate >= 10 ? Math.round(rate).toLocaleString("en-US") : rate.toPrecision(2);
}

/** A time as a person says it: "0.4 s", "12 s", "3 min 5 s", "2 h 10 min". */
function duration(seconds: number): string {
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
