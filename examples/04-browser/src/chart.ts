// A line chart on a canvas that grows while the training goes on.
import { Curve, type Bucket } from "./curve.js";
import { cssVariable, onThemeChange } from "./dom.js";
import type { Axis } from "./scale.js";

export interface ChartOptions {
  /** What is drawn, such as "training loss". */
  name: string;
  /** Shown above the axis, with the unit. */
  yLabel: string;
  xLabel: string;
  /** The name of the CSS variable with the curve's colour. */
  color: string;
  /** How much the line is smoothed, in [0, 1); the values themselves are drawn faintly behind. */
  smoothing: number;
  yAxis(buckets: readonly Bucket[]): Axis;
  xAxis(last: number, width: number): Axis;
  /** A value as it is said: "0.123", "97.2 %". */
  format(value: number): string;
  /** A tick's label. */
  tick(value: number): string;
  /** One sentence about a curve that has points. */
  summary(buckets: readonly Bucket[]): string;
}

const margin = { left: 46, right: 22, top: 30, bottom: 40 };
const summaryEvery = 1000; // milliseconds

interface Colors {
  ink: string;
  soft: string;
  line: string;
  curve: string;
  font: string;
}

/** Draws at most once per frame, and in a time that does not grow with the number of steps. */
export class Chart {
  private readonly curve: Curve;
  private readonly context: CanvasRenderingContext2D;
  private colors!: Colors;
  private size = { width: 0, height: 0 };
  private plot = { width: 0, height: 0 };
  private axes: { x: Axis; y: Axis } | null = null;
  private frame = 0;
  private chosen: Bucket | null = null;
  private summarised = -Infinity;
  private later = 0;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly caption: HTMLElement,
    private readonly options: ChartOptions,
    private readonly announce: (text: string) => void,
  ) {
    this.curve = new Curve(options.smoothing);
    this.context = canvas.getContext("2d")!;
    this.readColors();
    onThemeChange(() => {
      this.readColors();
      this.draw();
    });
    new ResizeObserver(() => this.resize()).observe(canvas);
    canvas.addEventListener("pointermove", (event) => this.chooseAt(event.offsetX));
    canvas.addEventListener("pointerleave", () => this.choose(null));
    canvas.addEventListener("blur", () => this.choose(null));
    canvas.addEventListener("keydown", (event) => this.onKey(event));
    this.describe(true);
  }

  add(x: number, y: number): void {
    if (Number.isFinite(y)) this.curve.add(x, y);
    this.draw();
  }

  clear(): void {
    this.curve.clear();
    this.chosen = null;
    this.describe(true);
    this.draw();
  }

  private get buckets(): readonly Bucket[] {
    return this.curve.buckets;
  }

  private draw(): void {
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
      this.describe(false);
    });
  }

  private readColors(): void {
    const color = (name: string) => cssVariable(this.canvas, name);
    this.colors = {
      ink: color("--ink"),
      soft: color("--soft"),
      line: color("--line"),
      curve: color(this.options.color),
      font: `12px ${getComputedStyle(this.canvas).fontFamily}`,
    };
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = devicePixelRatio;
    this.size = { width, height };
    this.plot = {
      width: width - margin.left - margin.right,
      height: height - margin.top - margin.bottom,
    };
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paint();
  }

  private x(value: number): number {
    return margin.left + this.axes!.x.place(value) * this.plot.width;
  }

  private y(value: number): number {
    const share = Math.min(1, Math.max(0, this.axes!.y.place(value)));
    return margin.top + (1 - share) * this.plot.height;
  }

  private paint(): void {
    const { context, size, options, buckets } = this;
    if (this.plot.width <= 0) return;
    this.axes = {
      x: options.xAxis(buckets.at(-1)?.x ?? 0, this.plot.width),
      y: options.yAxis(buckets),
    };
    context.clearRect(0, 0, size.width, size.height);
    this.paintAxes(this.axes.x, this.axes.y);
    if (buckets.length > 0) this.paintCurve();
    if (this.chosen !== null) this.paintChosen(this.chosen);
  }

  private paintAxes(xAxis: Axis, yAxis: Axis): void {
    const { context, colors, plot } = this;
    const right = margin.left + plot.width;
    const bottom = margin.top + plot.height;
    context.font = colors.font;
    context.lineWidth = 1;
    context.strokeStyle = colors.line;
    context.fillStyle = colors.soft;
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.beginPath();
    for (const tick of yAxis.ticks) {
      const y = Math.round(this.y(tick)) + 0.5;
      context.moveTo(margin.left, y);
      context.lineTo(right, y);
      context.fillText(this.options.tick(tick), margin.left - 8, y);
    }
    context.stroke();
    context.textAlign = "center";
    for (const tick of xAxis.ticks) {
      context.fillText(tick.toLocaleString("en"), this.x(tick), bottom + 13);
    }
    context.textAlign = "left";
    context.fillText(this.options.yLabel, 2, 10);
    context.textAlign = "right";
    context.fillText(this.options.xLabel, right, bottom + 31);
  }

  private paintCurve(): void {
    const { context, colors, buckets } = this;
    context.strokeStyle = colors.curve;
    context.lineJoin = "round";
    if (this.options.smoothing > 0) {
      context.globalAlpha = 0.28;
      context.lineWidth = 1;
      context.beginPath();
      for (const { x, low, high } of buckets) {
        context.lineTo(this.x(x), this.y(low));
        if (high > low) context.lineTo(this.x(x), this.y(high));
      }
      context.stroke();
      context.globalAlpha = 1;
    }
    context.lineWidth = 2;
    context.beginPath();
    for (const { x, smooth } of buckets) context.lineTo(this.x(x), this.y(smooth));
    context.stroke();
    const last = buckets.at(-1)!;
    this.paintDot(last, 3);
  }

  private paintDot({ x, smooth }: Bucket, radius: number): void {
    this.context.fillStyle = this.colors.curve;
    this.context.beginPath();
    this.context.arc(this.x(x), this.y(smooth), radius, 0, 2 * Math.PI);
    this.context.fill();
  }

  private paintChosen(bucket: Bucket): void {
    const { context, colors, plot } = this;
    const x = Math.round(this.x(bucket.x)) + 0.5;
    context.strokeStyle = colors.soft;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, margin.top);
    context.lineTo(x, margin.top + plot.height);
    context.stroke();
    this.paintDot(bucket, 4.5);
  }

  private chooseAt(offset: number): void {
    if (this.axes === null) return;
    const { low, high } = this.axes.x;
    const share = (offset - margin.left) / this.plot.width;
    this.choose(this.curve.nearest(low + share * (high - low)) ?? null);
  }

  private choose(bucket: Bucket | null): void {
    if (bucket === this.chosen) return;
    this.chosen = bucket;
    this.describe(true);
    this.draw();
  }

  private onKey(event: KeyboardEvent): void {
    const { buckets } = this;
    if (buckets.length === 0) return;
    const at = this.chosen === null ? buckets.length - 1 : buckets.indexOf(this.chosen);
    const stride = event.shiftKey ? 10 : 1;
    const targets: Record<string, number> = {
      ArrowLeft: this.chosen === null ? at : at - stride,
      ArrowRight: at + stride,
      Home: 0,
      End: buckets.length - 1,
    };
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    this.choose(buckets[Math.min(buckets.length - 1, Math.max(0, target))]!);
    this.announce(this.caption.textContent);
  }

  /** Says in words what is drawn, or which point is chosen; by itself at most once a second. */
  private describe(now: boolean): void {
    const time = performance.now();
    const wait = this.summarised + summaryEvery - time;
    if (!now && wait > 0) {
      // Nothing may be drawn any more by then, as when the training is paused.
      this.later ||= window.setTimeout(() => {
        this.later = 0;
        this.describe(false);
      }, wait);
      return;
    }
    if (!now && this.chosen !== null) return;
    this.summarised = time;
    const { chosen, options, buckets } = this;
    const text =
      chosen !== null
        ? `Step ${chosen.x.toLocaleString("en")}: ${options.name} ${options.format(chosen.smooth)}`
        : buckets.length === 0
          ? "Nothing to show yet."
          : options.summary(buckets);
    this.caption.textContent = text;
    this.canvas.setAttribute("aria-label", `Chart of the ${options.name}. ${text}`);
  }
}
