// A curve of any length in bounded memory: neighbouring points are merged when there are many.

/** What a few neighbouring points have in common. */
export interface Bucket {
  /** The last x of the points. */
  x: number;
  low: number;
  high: number;
  /** The smoothed value at `x`. */
  smooth: number;
}

const capacity = 800;

/**
 * Points in the order of x. When more than `capacity` buckets are filled, each two become one, so
 * that drawing the curve takes the same time after a hundred steps and after a million.
 */
export class Curve {
  buckets: Bucket[] = [];
  private pointsPerBucket = 1;
  private inLast = 0;
  private average = 0;
  private weight = 0;

  /** `memory` in [0, 1) is how much of the smoothed value is kept at each point. */
  constructor(private readonly memory: number) {}

  add(x: number, y: number): void {
    // Dividing by the sum of the weights removes the pull of the zero that it starts from.
    this.average = this.memory * this.average + (1 - this.memory) * y;
    this.weight = this.memory * this.weight + (1 - this.memory);
    const smooth = this.average / this.weight;
    const last = this.buckets.at(-1);
    if (last !== undefined && this.inLast < this.pointsPerBucket) {
      merge(last, { x, low: y, high: y, smooth });
      this.inLast++;
      return;
    }
    if (this.buckets.length === capacity) this.halve();
    this.buckets.push({ x, low: y, high: y, smooth });
    this.inLast = 1;
  }

  clear(): void {
    this.buckets = [];
    this.pointsPerBucket = 1;
    this.inLast = this.average = this.weight = 0;
  }

  /** The bucket whose x is nearest. */
  nearest(x: number): Bucket | undefined {
    let best: Bucket | undefined;
    for (const bucket of this.buckets) {
      if (best === undefined || Math.abs(bucket.x - x) < Math.abs(best.x - x)) best = bucket;
    }
    return best;
  }

  private halve(): void {
    const halved: Bucket[] = [];
    for (let i = 0; i < this.buckets.length; i += 2) {
      const bucket = this.buckets[i]!;
      const next = this.buckets[i + 1];
      if (next !== undefined) merge(bucket, next);
      halved.push(bucket);
    }
    this.buckets = halved;
    this.pointsPerBucket *= 2;
  }
}

function merge(into: Bucket, later: Bucket): void {
  into.x = later.x;
  into.low = Math.min(into.low, later.low);
  into.high = Math.max(into.high, later.high);
  into.smooth = later.smooth;
}
