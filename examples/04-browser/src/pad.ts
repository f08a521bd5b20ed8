// The canvas on which a digit is drawn: by mouse, finger or pen, by the arrow keys, or as a sample.
import { cssVariable, onThemeChange } from "./dom.js";
import { normalise } from "./normalise.js";

const side = 28;
/** Width of the line as a share of the canvas; about that of MNIST's digits once it is scaled. */
const penWidth = 0.085;
const cursorStep = 1 / 28;

interface Point {
  x: number;
  y: number;
}

/** Calls `onChange` when the drawing is another one; `pixels` then holds it as 28 × 28 bytes. */
export class Pad {
  /** Null when the canvas is empty. */
  pixels: Uint8Array | null = null;
  private readonly context: CanvasRenderingContext2D;
  private readonly size: number;
  private ink: string;
  private last: Point | null = null;
  private readonly cursor: Point = { x: 0.5, y: 0.3 };
  private penIsDown = false;
  private pending = false;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    /** Shows where the arrow keys have moved to. */
    private readonly marker: HTMLElement,
    private readonly onChange: () => void,
    private readonly announce: (text: string) => void,
  ) {
    this.size = canvas.width;
    this.context = canvas.getContext("2d", { willReadFrequently: true })!;
    this.context.lineCap = this.context.lineJoin = "round";
    this.ink = cssVariable(canvas, "--ink");
    onThemeChange(() => this.recolor());
    this.listen();
    this.placeMarker();
  }

  clear(): void {
    this.context.clearRect(0, 0, this.size, this.size);
    this.pixels = null;
    this.last = null;
    this.setPen(false);
    this.onChange();
  }

  /** Shows an image of 28 × 28 bytes; drawing goes on from there. */
  show(pixels: Uint8Array): void {
    this.clear();
    this.context.drawImage(inkImage(pixels, this.ink), 0, 0, this.size, this.size);
    this.pixels = pixels;
    this.onChange();
  }

  private listen(): void {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !event.isPrimary) return;
      canvas.setPointerCapture(event.pointerId);
      this.last = null;
      this.lineTo(this.pointOf(event));
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!canvas.hasPointerCapture(event.pointerId)) return;
      const points = event.getCoalescedEvents?.() ?? [];
      for (const point of points.length > 0 ? points : [event]) this.lineTo(this.pointOf(point));
    });
    canvas.addEventListener("keydown", (event) => this.onKey(event));
    canvas.addEventListener("blur", () => this.setPen(false));
  }

  private pointOf(event: PointerEvent): Point {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    return { x: (event.clientX - left) / width, y: (event.clientY - top) / height };
  }

  private lineTo(point: Point): void {
    const { context, size } = this;
    const from = this.last ?? point;
    context.strokeStyle = this.ink;
    context.lineWidth = penWidth * size;
    context.beginPath();
    context.moveTo(from.x * size, from.y * size);
    context.lineTo(point.x * size, point.y * size);
    context.stroke();
    this.last = point;
    this.changed();
  }

  /** Reads the drawing once per frame, however many events have come. */
  private changed(): void {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      const { size } = this;
      this.pixels = normalise(this.context.getImageData(0, 0, size, size).data, size, size);
      this.onChange();
    });
  }

  private onKey(event: KeyboardEvent): void {
    const moves: Record<string, Point> = {
      ArrowLeft: { x: -1, y: 0 },
      ArrowRight: { x: 1, y: 0 },
      ArrowUp: { x: 0, y: -1 },
      ArrowDown: { x: 0, y: 1 },
    };
    const move = moves[event.key];
    if (move !== undefined) {
      this.cursor.x = clamp(this.cursor.x + move.x * cursorStep);
      this.cursor.y = clamp(this.cursor.y + move.y * cursorStep);
      this.placeMarker();
      if (this.penIsDown) this.lineTo({ ...this.cursor });
    } else if (event.key === " ") {
      if (!event.repeat) this.setPen(!this.penIsDown, true);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      this.clear();
      this.announce("Drawing cleared.");
    } else {
      return;
    }
    event.preventDefault();
  }

  private setPen(down: boolean, say = false): void {
    if (say) this.announce(down ? "Pen down." : "Pen up.");
    this.penIsDown = down;
    this.marker.classList.toggle("down", down);
    this.last = null;
    if (down) this.lineTo({ ...this.cursor });
  }

  private placeMarker(): void {
    this.marker.style.left = `${100 * this.cursor.x}%`;
    this.marker.style.top = `${100 * this.cursor.y}%`;
  }

  /** Gives what is drawn the colour of the other theme. */
  private recolor(): void {
    this.ink = cssVariable(this.canvas, "--ink");
    this.context.globalCompositeOperation = "source-in";
    this.context.fillStyle = this.ink;
    this.context.fillRect(0, 0, this.size, this.size);
    this.context.globalCompositeOperation = "source-over";
  }
}

function clamp(value: number): number {
  return Math.min(1 - penWidth / 2, Math.max(penWidth / 2, value));
}

/** A canvas of 28 × 28 pixels that shows the bytes as ink. */
export function inkImage(pixels: Uint8Array, ink: string): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = side;
  paintInk(canvas, pixels, ink);
  return canvas;
}

/** Paints 28 × 28 bytes as ink onto a canvas of that size. */
export function paintInk(canvas: HTMLCanvasElement, pixels: Uint8Array, ink: string): void {
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(side, side);
  pixels.forEach((value, i) => (image.data[4 * i + 3] = value));
  context.putImageData(image, 0, 0);
  context.globalCompositeOperation = "source-in";
  context.fillStyle = ink;
  context.fillRect(0, 0, side, side);
  context.globalCompositeOperation = "source-over";
}
