/** Line charts and histograms as SVG, with a sentence that says the same. */

import { el, svg } from "./dom";

const kWidth = 640, kHeight = 260, kLeft = 56, kRight = 14, kTop = 26, kBottom = 30;

export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [number, number])[];
}

function short(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

/** A value that NaN and infinities have no part in. */
function limits(values: readonly number[]): [number, number] {
  let least = Infinity, most = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  if (least > most) return [0, 1];
  return least === most ? [least - 0.5, most + 0.5] : [least, most];
}

/** Means of neighbours, if there are more points than the chart has columns. */
function thinned(points: Series["points"]): Series["points"] {
  const each = Math.ceil(points.length / 300);
  if (each <= 1) return points;
  const out: [number, number][] = [];
  for (let i = 0; i < points.length; i += each) {
    const some = points.slice(i, i + each);
    out.push([some[some.length - 1]?.[0] ?? 0, some.reduce((sum, [, y]) => sum + y, 0) / some.length]);
  }
  return out;
}

export class LineChart {
  readonly element = el("figure");
  readonly #svg = svg("svg", { viewBox: `0 0 ${kWidth} ${kHeight}`, class: "chart", role: "img" });
  readonly #caption = el("figcaption", { class: "status" });

  /** `from`, `to`: the range of y, where it is known. */
  constructor(readonly title: string, readonly xName: string, readonly from?: number, readonly to?: number) {
    this.element.append(this.#svg, this.#caption);
    this.draw([]);
  }

  draw(series: readonly Series[]): void {
    const shown = series.map(({ name, points }) => ({ name, points: thinned(points) }));
    const all = shown.flatMap(({ points }) => points);
    const [x0, x1] = limits(all.map(([x]) => x));
    const [low, high] = limits(all.map(([, y]) => y));
    const y0 = this.from ?? Math.min(low, 0), y1 = this.to ?? high;
    const x = (value: number): number => kLeft + ((value - x0) / (x1 - x0)) * (kWidth - kLeft - kRight);
    const y = (value: number): number => kHeight - kBottom - ((value - y0) / (y1 - y0)) * (kHeight - kTop - kBottom);
    const parts: Node[] = [];
    for (let i = 0; i <= 4; ++i) {
      const value = y0 + ((y1 - y0) * i) / 4;
      parts.push(svg("line", { class: "grid", x1: kLeft, x2: kWidth - kRight, y1: y(value), y2: y(value) }),
        svg("text", { x: kLeft - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)));
    }
    parts.push(svg("text", { x: kLeft, y: kHeight - 10 }, short(x0)),
      svg("text", { x: kWidth - kRight, y: kHeight - 10, "text-anchor": "end" }, `${this.xName} ${short(x1)}`));
    shown.forEach(({ name, points }, i) => {
      const key = i === 0 ? "a" : "b";
      const line = points.map(([px, py]) => `${x(px).toFixed(1)},${y(Math.min(Math.max(py, y0), y1)).toFixed(1)}`).join(" ");
      parts.push(svg("polyline", { class: key, points: line }));
      parts.push(svg("text", { class: `key-${key}`, x: kLeft + 4 + i * 170, y: 17 }, `${i === 0 ? "━" : "╍"} ${name}`));
    });
    this.#svg.replaceChildren(...parts);
    const last = series.filter(({ points }) => points.length > 0)
      .map(({ name, points }) => `${name} ${short(points[points.length - 1]?.[1] ?? 0)}`);
    const text = last.length === 0 ? "Nothing yet." : `Last: ${last.join(", ")}.`;
    this.#caption.textContent = text;
    this.#svg.setAttribute("aria-label", `${this.title}. ${text}`);
  }
}

/** A histogram of values in 48 bins. */
export function histogram(title: string, values: ArrayLike<number>): HTMLElement {
  const kBins = 48, finite = Array.from(values).filter(Number.isFinite);
  const [low, high] = limits(finite);
  const counts = new Array<number>(kBins).fill(0);
  let sum = 0, squares = 0;
  for (const value of finite) {
    const bin = Math.min(kBins - 1, Math.floor(((value - low) / (high - low)) * kBins));
    counts[bin] = (counts[bin] ?? 0) + 1;
    sum += value;
    squares += value * value;
  }
  const most = Math.max(...counts, 1), mean = sum / Math.max(finite.length, 1);
  const deviation = Math.sqrt(Math.max(squares / Math.max(finite.length, 1) - mean * mean, 0));
  const wide = (kWidth - kLeft - kRight) / kBins, tall = kHeight - kTop - kBottom;
  const parts: Node[] = counts.map((count, i) => svg("rect", { class: "bar", x: kLeft + i * wide + 0.5,
    y: kHeight - kBottom - (count / most) * tall, width: wide - 1, height: (count / most) * tall }));
  parts.push(svg("text", { x: kLeft, y: kHeight - 10 }, short(low)),
    svg("text", { x: kWidth - kRight, y: kHeight - 10, "text-anchor": "end" }, short(high)),
    svg("text", { x: kLeft - 6, y: kTop + 4, "text-anchor": "end" }, String(most)),
    svg("text", { x: kLeft - 6, y: kHeight - kBottom, "text-anchor": "end" }, "0"));
  const text = `${finite.length} values from ${short(low)} to ${short(high)}, mean ${short(mean)}, deviation ${short(deviation)}` +
    (finite.length < values.length ? `; ${values.length - finite.length} are not finite` : "") + ".";
  const picture = svg("svg", { viewBox: `0 0 ${kWidth} ${kHeight}`, class: "chart", role: "img",
    "aria-label": `${title}. ${text}` }, ...parts);
  return el("figure", {}, picture, el("figcaption", { class: "status" }, text));
}
