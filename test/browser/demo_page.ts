// The demo as its tests use it: what it shows, and how one draws on it.
import type { Page } from "playwright-core";

export type State = "loading" | "ready" | "training" | "paused" | "failed";

export class DemoPage {
  constructor(readonly page: Page) {}

  async waitFor(state: State, timeout = 60_000): Promise<void> {
    const selector = ["failed", state].map((each) => `body[data-state="${each}"]`).join();
    await this.page.waitForSelector(selector, { timeout });
    const reached = await this.page.locator("body").getAttribute("data-state");
    if (reached !== state) throw new Error(`the page says: ${await this.text("problem-text")}`);
  }

  text(id: string): Promise<string> {
    return this.page.locator(`#${id}`).innerText();
  }

  /** A number of the numbers line; NaN while it shows none. */
  async number(id: string): Promise<number> {
    const text = await this.text(`number-${id}`);
    return Number.parseFloat(text.replaceAll(",", ""));
  }

  /** Waits until the test accuracy, in percent, is at least this. */
  async waitForAccuracy(percent: number, timeout: number): Promise<void> {
    const reached = (least: number) =>
      Number.parseFloat(document.getElementById("number-accuracy")!.textContent) >= least;
    await this.page.waitForFunction(reached, percent, { timeout, polling: 200 });
  }

  async waitForStep(step: number, timeout = 30_000): Promise<void> {
    const reached = (least: number) =>
      Number(document.getElementById("number-step")!.textContent.replaceAll(",", "")) >= least;
    await this.page.waitForFunction(reached, step, { timeout, polling: 100 });
  }

  /** Waits until an element's text contains this. */
  async waitForText(id: string, part: string, timeout = 5_000): Promise<void> {
    const shown = ([id, part]: [string, string]) =>
      document.getElementById(id)!.textContent.includes(part);
    await this.page.waitForFunction(shown, [id, part] as [string, string], { timeout });
  }

  /** Draws lines through points given as shares of the pad, with the mouse. */
  async draw(lines: readonly (readonly (readonly [number, number])[])[]): Promise<void> {
    const box = (await this.page.locator("#pad").boundingBox())!;
    for (const points of lines) {
      const [first, ...rest] = points.map(
        ([x, y]) => [box.x + x * box.width, box.y + y * box.height] as const,
      );
      await this.page.mouse.move(...first!);
      await this.page.mouse.down();
      for (const point of rest) await this.page.mouse.move(...point, { steps: 6 });
      await this.page.mouse.up();
    }
  }

  /** The digit whose bar is the longest once the reading no longer changes. */
  async verdict(): Promise<{ digit: number; probability: number }> {
    let before = "";
    for (let tries = 0; tries < 50; tries++) {
      await this.page.waitForTimeout(150);
      const now = await this.text("bars");
      if (now === before && !now.includes("–")) break;
      before = now;
    }
    const best = this.page.locator("#bars li.best");
    const [digit, probability] = (await best.innerText()).split(/\s+/).map(Number.parseFloat);
    return { digit: digit!, probability: probability! / 100 };
  }
}

/** How people draw some digits: lines through points, as shares of the pad. */
export const drawings = {
  seven: [
    [
      [0.28, 0.24],
      [0.72, 0.24],
      [0.45, 0.82],
    ],
  ],
  zero: [
    Array.from({ length: 25 }, (_, i) => {
      const angle = (-2 * Math.PI * i) / 24 - Math.PI / 2;
      return [0.5 + 0.22 * Math.cos(angle), 0.5 + 0.32 * Math.sin(angle)] as const;
    }),
  ],
  three: [
    [
      [0.32, 0.22],
      [0.5, 0.16],
      [0.66, 0.24],
      [0.64, 0.38],
      [0.48, 0.47],
      [0.66, 0.56],
      [0.7, 0.72],
      [0.54, 0.84],
      [0.32, 0.78],
    ],
  ],
} as const satisfies Record<string, readonly (readonly (readonly [number, number])[])[]>;
