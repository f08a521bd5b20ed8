// The panel in which a digit is drawn and read: the pad, the samples, the bars and the verdict.
import { Bars, percent, type Verdict } from "./bars.js";
import { cssVariable, element, onThemeChange } from "./dom.js";
import { inkImage, Pad, paintInk } from "./pad.js";
import type { Sample, ToWorker } from "./protocol.js";

/** How long the drawing rests before its reading is spoken, in milliseconds. */
const speakAfter = 700;

/** Asks for one reading at a time; what changes meanwhile is asked for when the answer is here. */
export class Reader {
  private readonly pad: Pad;
  private readonly bars = new Bars(element("bars"));
  private readonly verdict = element("verdict");
  private readonly latency = element("latency");
  private readonly seen = element<HTMLCanvasElement>("seen");
  private id = 0;
  private askedAt = 0;
  private waiting = false;
  private stale = false;
  private speech: ReturnType<typeof setTimeout> | undefined;
  private speakNext = false;
  private samples: readonly Sample[] = [];

  constructor(
    /** Sends to the worker; returns false while there is none that could answer. */
    private readonly send: (message: ToWorker) => boolean,
    private readonly announce: (text: string) => void,
  ) {
    this.pad = new Pad(
      element<HTMLCanvasElement>("pad"),
      element("pad-cursor"),
      () => this.drawingChanged(),
      announce,
    );
    element("clear").addEventListener("click", () => {
      this.pad.clear();
      announce("Drawing cleared.");
    });
    onThemeChange(() => {
      this.paintSeen();
      this.offer(this.samples);
    });
    this.drawingChanged();
  }

  /** Offers the samples as buttons: the first of each digit, and the next at a second press. */
  offer(samples: readonly Sample[]): void {
    this.samples = samples;
    const list = element("samples");
    const ink = cssVariable(list, "--ink");
    const buttons: HTMLButtonElement[] = [];
    for (let digit = 0; digit < 10; digit++) {
      const images = samples.filter((sample) => sample.digit === digit);
      if (images.length === 0) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.title = `Test image of a ${digit}`;
      button.setAttribute("aria-label", `Test image of a ${digit}`);
      button.append(inkImage(images[0]!.pixels, ink));
      let presses = 0;
      button.addEventListener("click", () => {
        this.pad.show(images[presses++ % images.length]!.pixels);
      });
      buttons.push(button);
    }
    list.replaceChildren(...buttons);
  }

  /** Reads the drawing again: the network may have learned something. */
  refresh(): void {
    const { pixels } = this.pad;
    if (pixels === null) return;
    if (this.waiting) {
      this.stale = true;
      return;
    }
    this.askedAt = performance.now();
    this.waiting = this.send({ type: "predict", id: ++this.id, pixels });
  }

  /** Forgets a question that a former worker left unanswered. */
  restart(): void {
    this.waiting = this.stale = false;
    this.drawingChanged();
  }

  /** Takes the worker's answer. */
  answer(id: number, probabilities: Float32Array): void {
    if (id !== this.id) return;
    this.waiting = false;
    if (this.pad.pixels === null) return;
    this.latency.textContent = `${(performance.now() - this.askedAt).toFixed(0)} ms`;
    const verdict = this.bars.show(probabilities);
    this.verdict.textContent = sentence(verdict);
    if (this.speakNext) {
      clearTimeout(this.speech);
      this.speech = setTimeout(() => {
        this.speakNext = false;
        this.announce(this.verdict.textContent);
      }, speakAfter);
    }
    if (!this.stale) return;
    this.stale = false;
    this.refresh();
  }

  /** Shows what the network is given: the drawing, scaled and centred. */
  private paintSeen(): void {
    const pixels = this.pad.pixels ?? new Uint8Array(28 * 28);
    paintInk(this.seen, pixels, cssVariable(this.seen, "--ink"));
  }

  private drawingChanged(): void {
    const { pixels } = this.pad;
    this.paintSeen();
    if (pixels === null) {
      this.id++;
      this.waiting = this.stale = this.speakNext = false;
      clearTimeout(this.speech);
      this.bars.clear();
      this.verdict.textContent = "Draw a digit, or pick one below.";
      this.latency.textContent = "–";
      return;
    }
    this.speakNext = true;
    this.refresh();
  }
}

function sentence({ digit, probability }: Verdict): string {
  const sure = percent(probability, 0);
  if (probability < 0.4) return `Not sure: perhaps a ${digit} (${sure})`;
  if (probability < 0.8) return `It looks like a ${digit} (${sure})`;
  return `It is a ${digit} (${sure})`;
}
