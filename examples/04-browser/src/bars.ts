// The probability of each digit, as ten bars.

/** A digit and how sure the network is of it. */
export interface Verdict {
  digit: number;
  probability: number;
}

export class Bars {
  private readonly rows: { item: HTMLElement; bar: HTMLElement; value: HTMLElement }[] = [];

  constructor(list: HTMLElement) {
    for (let digit = 0; digit < 10; digit++) {
      const item = document.createElement("li");
      const name = document.createElement("span");
      name.textContent = String(digit);
      const track = document.createElement("span");
      track.className = "track";
      const bar = document.createElement("span");
      bar.className = "bar";
      track.append(bar);
      const value = document.createElement("span");
      value.className = "value";
      item.append(name, track, value);
      list.append(item);
      this.rows.push({ item, bar, value });
    }
    this.clear();
  }

  clear(): void {
    for (const { item, bar, value } of this.rows) {
      item.classList.remove("best");
      bar.style.transform = "scaleX(0)";
      value.textContent = "–";
    }
  }

  /** Shows the probabilities and returns the likeliest digit. */
  show(probabilities: Float32Array): Verdict {
    const probability = Math.max(...probabilities);
    const digit = probabilities.indexOf(probability);
    this.rows.forEach(({ item, bar, value }, i) => {
      const share = probabilities[i]!;
      item.classList.toggle("best", i === digit);
      bar.style.transform = `scaleX(${share.toFixed(3)})`;
      value.textContent = percent(share, 0);
    });
    return { digit, probability };
  }
}

/** A share as a person reads it: "97.2 %". */
export function percent(share: number, decimals: number): string {
  return `${(100 * share).toFixed(decimals)}\u00a0%`;
}
