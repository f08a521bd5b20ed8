// A line search for the strong Wolfe conditions; Nocedal and Wright (2006), algorithms 3.5 and 3.6.
import type { Tensor } from "../tensor.js";

/** What is known at distance t along the direction; `slope` is the derivative by t. */
export interface Point {
  t: number;
  loss: number;
  grad: Tensor;
  slope: number;
}

export const dot = (a: Tensor, b: Tensor) => Number(a.mul(b).sum().item());

/** The largest absolute value. */
export function largest(t: Tensor): number {
  let most = 0;
  for (const x of t.data()) most = Math.max(most, Math.abs(Number(x)));
  return most;
}

const sufficient = 1e-4;
const curvature = 0.9;
const leastChange = 1e-9;
const most = 25;

/** The minimum of the cubic through two points with their slopes, inside [low, high]. */
function cubicMinimum(a: Point, b: Point, low: number, high: number): number {
  const d1 = a.slope + b.slope - (3 * (a.loss - b.loss)) / (a.t - b.t);
  const square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const [p, q] = a.t <= b.t ? [a, b] : [b, a];
  const d2 = Math.sqrt(square);
  const at = q.t - (q.t - p.t) * ((q.slope + d2 - d1) / (q.slope - p.slope + 2 * d2));
  return Math.min(Math.max(at, low), high);
}

/** Finds a step near `t` that satisfies the conditions, or the best one seen. */
export function strongWolfe(
  evaluate: (t: number) => Point,
  t: number,
  d: Tensor,
  start: Point,
): { point: Point; evals: number } {
  const tooHigh = (p: Point) => p.loss > start.loss + sufficient * p.t * start.slope;
  const flat = (p: Point) => Math.abs(p.slope) <= -curvature * start.slope;
  let previous = start;
  let now = evaluate(t);
  let evals = 1;
  let iterations = 0;
  let bracket: [Point, Point] = [start, now];
  for (; iterations < most; iterations++) {
    bracket = [previous, now];
    if (tooHigh(now) || (iterations > 1 && now.loss >= previous.loss)) break;
    if (flat(now)) return { point: now, evals };
    if (now.slope >= 0) break;
    const low = now.t + 0.01 * (now.t - previous.t);
    const next = evaluate(cubicMinimum(previous, now, low, 10 * now.t));
    previous = now;
    now = next;
    evals += 1;
  }
  if (iterations === most) bracket = [start, now];
  return zoom(evaluate, bracket, { tooHigh, flat, evals, iterations, scale: largest(d) });
}

interface Zoom {
  tooHigh(p: Point): boolean;
  flat(p: Point): boolean;
  evals: number;
  iterations: number;
  scale: number;
}

function zoom(
  evaluate: (t: number) => Point,
  [a, b]: [Point, Point],
  { tooHigh, flat, evals, iterations, scale }: Zoom,
): { point: Point; evals: number } {
  let [low, high] = a.loss <= b.loss ? [a, b] : [b, a];
  let stuck = false;
  for (; iterations < most; iterations++) {
    if (Math.abs(high.t - low.t) * scale < leastChange) break;
    const left = Math.min(low.t, high.t);
    const right = Math.max(low.t, high.t);
    let t = cubicMinimum(low, high, left, right);
    // Twice in a row near an end of the bracket: move a tenth away from it.
    const margin = 0.1 * (right - left);
    if (Math.min(right - t, t - left) < margin) {
      if (stuck || t >= right || t <= left) {
        t = Math.abs(t - right) < Math.abs(t - left) ? right - margin : left + margin;
        stuck = false;
      } else stuck = true;
    } else stuck = false;
    const now = evaluate(t);
    evals += 1;
    if (tooHigh(now) || now.loss >= low.loss) {
      high = now;
      if (high.loss < low.loss) [low, high] = [high, low];
      continue;
    }
    if (flat(now)) return { point: now, evals };
    if (now.slope * (high.t - low.t) >= 0) high = low;
    low = now;
  }
  return { point: low, evals };
}
