// Brings a drawing into the form of MNIST's images, which is what the network has learned to read.

const side = 28;
/** The longer side of every digit in MNIST. */
const boxSide = 20;
const faint = 24;

/** Where the ink is: its bounds (ends exclusive), its centre of mass. */
interface Ink {
  left: number;
  top: number;
  right: number;
  bottom: number;
  x: number;
  y: number;
}

/**
 * Scales the ink so that its longer side takes 20 of 28 pixels and puts its centre of mass in the
 * middle, as LeCun, Cortes and Burges did for MNIST. `rgba` holds `width` × `height` pixels whose
 * alpha is the ink. Returns 28 × 28 bytes, or null for an empty drawing.
 */
export function normalise(
  rgba: Uint8ClampedArray,
  width: number,
  height: number,
): Uint8Array | null {
  const ink = findInk(rgba, width, height);
  if (ink === null) return null;
  // A dot is not blown up to fill the box.
  const extent = Math.max(ink.right - ink.left, ink.bottom - ink.top, width / 8);
  const pixel = extent / boxSide;
  const pixels = new Uint8Array(side * side);
  for (let row = 0; row < side; row++) {
    const [top, bottom] = span(ink.y + (row - side / 2) * pixel, pixel, height);
    for (let column = 0; column < side; column++) {
      const [left, right] = span(ink.x + (column - side / 2) * pixel, pixel, width);
      let sum = 0;
      for (let y = top; y < bottom; y++) {
        for (let x = left; x < right; x++) sum += rgba[4 * (y * width + x) + 3]!;
      }
      const area = (bottom - top) * (right - left);
      if (area > 0) pixels[row * side + column] = Math.round(sum / area);
    }
  }
  return pixels;
}

/** The whole source pixels from `start` over `length`, within the drawing. */
function span(start: number, length: number, limit: number): [number, number] {
  const from = Math.round(start);
  const to = Math.max(from + 1, Math.round(start + length));
  return [Math.min(limit, Math.max(0, from)), Math.min(limit, Math.max(0, to))];
}

function findInk(rgba: Uint8ClampedArray, width: number, height: number): Ink | null {
  let [left, top, right, bottom] = [width, height, 0, 0];
  let [mass, sumX, sumY] = [0, 0, 0];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const alpha = rgba[4 * (y * width + x) + 3]!;
      if (alpha < faint) continue;
      left = Math.min(left, x);
      right = Math.max(right, x + 1);
      top = Math.min(top, y);
      bottom = y + 1;
      mass += alpha;
      sumX += alpha * (x + 0.5);
      sumY += alpha * (y + 0.5);
    }
  }
  return mass === 0 ? null : { left, top, right, bottom, x: sumX / mass, y: sumY / mass };
}
