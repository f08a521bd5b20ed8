// Axes: the range that an axis covers, the round numbers on it and where a value stands.

export interface Axis {
  low: number;
  high: number;
  ticks: number[];
  /** Where a value stands between `low` (0) and `high` (1). */
  place(value: number): number;
}

const roundFactors = [1, 2, 5, 10];

/** From `low` to `high`, with about `count` ticks at steps of 1, 2 or 5 times a power of ten. */
export function linearAxis(low: number, high: number, count: number): Axis {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * roundFactors.find((factor) => factor * power >= rough * 0.999)!;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  const ticks = Array.from({ length: last - first + 1 }, (_, i) => round((first + i) * step));
  return { low, high, ticks, place: (value) => (value - low) / (high - low) };
}

/** A logarithmic axis from the round number below `low` to that above `high`. */
export function logAxis(low: number, high: number): Axis {
  const rounds: number[] = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high * 10; power++) {
    for (const factor of [1, 2, 5]) rounds.push(round(factor * 10 ** power));
  }
  const from = rounds.findLast((value) => value <= low * 1.001) ?? low;
  const to = rounds.find((value) => value >= high * 0.999) ?? high;
  const inside = rounds.filter((value) => value >= from && value <= to);
  const powersOnly = inside.length > 9;
  const ticks = inside.filter((value) => !powersOnly || Number.isInteger(tidyLog(value)));
  const span = Math.log(to / from);
  return { low: from, high: to, ticks, place: (value) => Math.log(value / from) / span };
}

function round(value: number): number {
  return Number(value.toPrecision(12));
}

function tidyLog(value: number): number {
  return Number(Math.log10(value).toFixed(6));
}
