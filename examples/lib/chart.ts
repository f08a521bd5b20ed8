// Draws line charts, such as a loss curve, as one self-contained HTML page with inline SVG.
import { writeFileSync } from "node:fs";

export interface Series {
  name: string;
  /** Pairs of x and y, in the order of x. */
  points: readonly (readonly [number, number])[];
}

export interface Chart {
  title: string;
  /** What the axes show, with the unit: "step", "loss (nats)". */
  xLabel: string;
  yLabel: string;
  series: readonly Series[];
}

const size = { width: 760, height: 420, left: 72, right: 24, top: 24, bottom: 56 };
const plot = {
  width: size.width - size.left - size.right,
  height: size.height - size.top - size.bottom,
};

/** Text made safe inside HTML and attributes. */
function escape(text: string): string {
  const names: Record<string, string> = { "&": "amp", "<": "lt", ">": "gt", '"': "quot" };
  return text.replace(/[&<>"]/g, (char) => `&${names[char]};`);
}

/** Round numbers from `low` to `high`, about `count` of them, at steps of 1, 2 or 5 times 10^n. */
export function ticks(low: number, high: number, count: number): number[] {
  if (!(high > low)) return [low];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

function label(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(1);
  return Number(value.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 6 });
}

/** Smallest and largest of the finite values; a single value is given some room around it. */
function range(values: readonly number[]): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

/** Maps data to the picture. */
function scales(chart: Chart) {
  const points = chart.series.flatMap((series) => series.points);
  const [xLow, xHigh] = range(points.map(([x]) => x));
  let [yLow, yHigh] = range(points.map(([, y]) => y));
  // Losses and accuracies read best from zero; a curve far from zero keeps its own range.
  if (yLow > 0 && yLow < yHigh / 2) yLow = 0;
  yHigh += (yHigh - yLow) * 0.04;
  const x = (value: number) => size.left + ((value - xLow) / (xHigh - xLow)) * plot.width;
  const y = (value: number) => size.top + (1 - (value - yLow) / (yHigh - yLow)) * plot.height;
  return { x, y, xTicks: ticks(xLow, xHigh, 8), yTicks: ticks(yLow, yHigh, 5) };
}

type Scales = ReturnType<typeof scales>;

function axes(chart: Chart, { x, y, xTicks, yTicks }: Scales): string {
  const right = size.left + plot.width;
  const bottom = size.top + plot.height;
  const lines = yTicks.map((tick) => {
    const at = y(tick).toFixed(1);
    return (
      `<line class="grid" x1="${size.left}" x2="${right}" y1="${at}" y2="${at}"/>` +
      `<text x="${size.left - 10}" y="${at}" dy="0.35em" text-anchor="end">${label(tick)}</text>`
    );
  });
  for (const tick of xTicks) {
    const at = x(tick).toFixed(1);
    lines.push(
      `<line class="axis" x1="${at}" x2="${at}" y1="${bottom}" y2="${bottom + 5}"/>` +
        `<text x="${at}" y="${bottom + 20}" text-anchor="middle">${label(tick)}</text>`,
    );
  }
  const middleX = size.left + plot.width / 2;
  const middleY = size.top + plot.height / 2;
  lines.push(
    `<line class="axis" x1="${size.left}" x2="${right}" y1="${bottom}" y2="${bottom}"/>`,
    `<text class="label" x="${middleX}" y="${size.height - 12}" text-anchor="middle">` +
      `${escape(chart.xLabel)}</text>`,
    `<text class="label" transform="translate(18 ${middleY}) rotate(-90)" text-anchor="middle">` +
      `${escape(chart.yLabel)}</text>`,
  );
  return lines.join("\n");
}

/** One path per series; a value that is not finite interrupts the line. */
function curves(chart: Chart, { x, y }: Scales): string {
  const path = ({ points }: Series, i: number) => {
    let pen = "M";
    let data = "";
    for (const [px, py] of points) {
      if (!Number.isFinite(px) || !Number.isFinite(py)) {
        pen = "M";
        continue;
      }
      data += `${pen}${x(px).toFixed(1)} ${y(py).toFixed(1)}`;
      pen = "L";
    }
    return `<path class="curve s${i % 4}" d="${data}"/>`;
  };
  return chart.series.map(path).join("\n");
}

function legend(chart: Chart): string {
  const items = chart.series.map(
    ({ name }, i) => `<li><span class="swatch s${i % 4}"></span>${escape(name)}</li>`,
  );
  return `<ul class="legend">${items.join("")}</ul>`;
}

/** The numbers behind the curves, at most 50 rows per series. */
function table(chart: Chart): string {
  const rows = chart.series.flatMap(({ name, points }) => {
    const every = Math.max(1, Math.ceil(points.length / 50));
    const shown = points.filter((_, i) => i % every === 0 || i === points.length - 1);
    return shown.map(
      ([x, y]) => `<tr><td>${escape(name)}</td><td>${label(x)}</td><td>${label(y)}</td></tr>`,
    );
  });
  const heads = ["series", chart.xLabel, chart.yLabel].map(
    (text) => `<th scope="col">${escape(text)}</th>`,
  );
  return (
    `<details><summary>The numbers</summary><table><thead><tr>${heads.join("")}</tr></thead>` +
    `<tbody>${rows.join("\n")}</tbody></table></details>`
  );
}

const style = `
:root { color-scheme: light dark; --ink: #1f2328; --soft: #59636e; --grid: #d8dee4;
  --paper: #ffffff; --s0: #0969da; --s1: #bc4c00; --s2: #1a7f37; --s3: #8250df; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9198a1; --grid: #30363d;
  --paper: #0d1117; --s0: #58a6ff; --s1: #f0883e; --s2: #3fb950; --s3: #bc8cff; } }
body { margin: 2rem auto; max-width: 820px; padding: 0 1rem; background: var(--paper);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.3rem; font-weight: 600; margin: 0 0 0.5rem; }
svg { width: 100%; height: auto; display: block; touch-action: none; }
svg text { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
svg text.label { fill: var(--ink); font-size: 13px; }
.grid { stroke: var(--grid); } .axis { stroke: var(--soft); }
.curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
.s0 { --series: var(--s0); } .s1 { --series: var(--s1); }
.s2 { --series: var(--s2); } .s3 { --series: var(--s3); }
.curve, .dot { stroke: var(--series); } .dot { fill: var(--paper); stroke-width: 2; }
.legend { display: flex; flex-wrap: wrap; gap: 0 1.2rem; list-style: none; padding: 0; margin: 0; }
.swatch { display: inline-block; width: 1.2em; height: 3px; margin-right: 0.5em;
  vertical-align: middle; background: var(--series); }
output { display: block; min-height: 1.5em; font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 0.1rem 0.8rem; border-bottom: 1px solid var(--grid); }
th:first-child, td:first-child { text-align: left; }
`;

// Runs in the page: shows the values nearest to the pointer, or moves by the arrow keys.
const script = `
const { series, xs, ys, names } = JSON.parse(document.getElementById("data").textContent);
const svg = document.querySelector("svg"), hover = svg.querySelector(".hover");
const out = document.querySelector("output");
const all = [...new Set(xs.flat())].sort((a, b) => a - b);
let at = all.length - 1;
function show() {
  hover.replaceChildren();
  const said = [];
  series.forEach((points, s) => {
    const i = xs[s].indexOf(all[at]);
    if (i < 0 || ys[s][i] === null) return;
    const dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
    dot.setAttribute("class", "dot s" + (s % 4));
    dot.setAttribute("r", 4);
    dot.setAttribute("cx", xs[s][i]);
    dot.setAttribute("cy", ys[s][i]);
    hover.append(dot);
    if (said.length === 0) said.push(names.x + " " + points[i][0]);
    said.push(names.series[s] + " " + points[i][1]);
  });
  out.textContent = said.join("   ");
}
svg.addEventListener("pointermove", (event) => {
  const x = new DOMPoint(event.clientX, event.clientY).matrixTransform(
    svg.getScreenCTM().inverse()).x;
  at = all.reduce((best, value, i) => Math.abs(value - x) < Math.abs(all[best] - x) ? i : best, 0);
  show();
});
svg.addEventListener("keydown", (event) => {
  const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!move) return;
  at = Math.min(all.length - 1, Math.max(0, at + move));
  event.preventDefault();
  show();
});
`;

/** Where each point stands in the picture and what to say about it, for the script in the page. */
function pageData(chart: Chart, { x, y }: Scales): string {
  const place = (value: number) => (Number.isFinite(value) ? Number(value.toFixed(1)) : null);
  const data = {
    series: chart.series.map(({ points }) => points.map(([px, py]) => [label(px), label(py)])),
    xs: chart.series.map(({ points }) => points.map(([px]) => place(x(px)))),
    ys: chart.series.map(({ points }) => points.map(([, py]) => place(y(py)))),
    names: { x: chart.xLabel, series: chart.series.map(({ name }) => name) },
  };
  return JSON.stringify(data).replaceAll("<", "\\u003c");
}

/** The chart as an HTML page; it asks for nothing from outside. */
export function chartPage(chart: Chart): string {
  const scale = scales(chart);
  const title = escape(chart.title);
  const lasts = chart.series.map(({ name, points }) => {
    const last = points.at(-1);
    return last ? `${name} ends at ${label(last[1])}` : `${name} is empty`;
  });
  const description = escape(`${chart.yLabel} over ${chart.xLabel}: ${lasts.join(", ")}.`);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${style}</style>
<h1>${title}</h1>
${legend(chart)}
<svg viewBox="0 0 ${size.width} ${size.height}" role="img" tabindex="0"
  aria-labelledby="title desc">
<title id="title">${title}</title>
<desc id="desc">${description}</desc>
${axes(chart, scale)}
${curves(chart, scale)}
<g class="hover"></g>
</svg>
<output aria-live="polite">Point at the curve, or use the arrow keys on it.</output>
${table(chart)}
<script type="application/json" id="data">${pageData(chart, scale)}</script>
<script>${script}</script>
</html>
`;
}

/** Writes the chart's page to a file. */
export function writeChart(path: string, chart: Chart): void {
  writeFileSync(path, chartPage(chart));
}
