/** How a chart is drawn: its scales, axes, bands and lines. */
import { readColour } from "../model/palette";
import type { Surface } from "./canvas";
import type { ChartProps } from "./chart";
import { type Series, stacked } from "./stack";

const LEFT = 56;
const RIGHT = 16;
const TOP = 8;
const FOOT = 20;
const TICK_PX = 90;

export interface Layout {
  left: number;
  right: number;
  bottom: number;
  x: (value: number) => number;
  y: (value: number) => number;
  valueAtX: (pixel: number) => number;
  valueAtY: (pixel: number) => number;
  low: number;
  high: number;
}

/** Give round numbers between two values, at most so many. */
export function ticks(low: number, high: number, most: number): number[] {
  const rough = (high - low) / Math.max(most, 1);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((one) => one * power >= rough) ?? 10) * power;
  const found: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) {
    found.push(Number((i * step).toPrecision(12)));
  }
  return found;
}

/** Give the index of the position next to a value; null if there are none. */
export function indexAt(xs: readonly number[], value: number): number | null {
  if (xs.length === 0) return null;
  let low = 0;
  let high = xs.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle]! < value) low = middle + 1;
    else high = middle;
  }
  const isBefore = low > 0 && value - xs[low - 1]! < xs[low]! - value;
  return isBefore ? low - 1 : low;
}

export function layout({ xs, series, kind }: ChartProps, width: number, height: number): Layout {
  const drawn = kind === "stack" ? stacked(series) : series.map((one) => one.values);
  let [low, high] = [0, 0];
  const ranges = series.flatMap((one) => [one.lows, one.highs]);
  for (const values of [...drawn, ...ranges]) {
    for (const value of values ?? []) {
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  if (high === low) high = low + 1;
  // Half a bar, or half a point, stands out on either side.
  const margin = kind === "bars" ? barWidth(xs) / 2 : kind === "points" ? barWidth(xs) / 20 : 0;
  const from = (xs[0] ?? 0) - margin;
  const to = Math.max((xs.at(-1) ?? 1) + margin, from + 1e-9);
  const [left, right, bottom] = [LEFT, width - RIGHT, height - FOOT];
  return {
    left,
    right,
    bottom,
    low,
    high,
    x: (value) => left + ((value - from) / (to - from)) * (right - left),
    y: (value) => bottom - ((value - low) / (high - low)) * (bottom - TOP),
    valueAtX: (pixel) => from + ((pixel - left) / (right - left)) * (to - from),
    valueAtY: (pixel) => low + ((bottom - pixel) / (bottom - TOP)) * (high - low),
  };
}

function barWidth(xs: readonly number[]): number {
  return xs.length > 1 ? (xs.at(-1)! - xs[0]!) / (xs.length - 1) : 1;
}

export function paint(
  { ink, width, height }: Surface,
  props: ChartProps,
  at: number | null,
  drawn: readonly [number, number] | null,
): void {
  const place = layout(props, width, height);
  drawAxes(ink, place, props);
  ink.save();
  ink.beginPath();
  ink.rect(place.left, 0, place.right - place.left, place.bottom + 1);
  ink.clip();
  ink.fillStyle = readColour("--bg-hover");
  for (const band of props.bands ?? []) {
    const from = place.x(band.from);
    ink.fillRect(from, TOP, Math.max(place.x(band.to) - from, 2), place.bottom - TOP);
  }
  drawSeries(ink, place, props);
  ink.fillStyle = readColour("--accent");
  if (props.cursor !== null && props.cursor !== undefined) {
    ink.fillRect(place.x(props.cursor), TOP, 1.5, place.bottom - TOP);
  }
  if (at !== null && props.xs[at] !== undefined) {
    ink.fillStyle = readColour("--text-dim");
    ink.fillRect(place.x(props.xs[at]), TOP, 1, place.bottom - TOP);
  }
  if (drawn) {
    ink.globalAlpha = 0.2;
    ink.fillRect(drawn[0], TOP, drawn[1] - drawn[0], place.bottom - TOP);
  }
  ink.restore();
}

function drawAxes(ink: CanvasRenderingContext2D, place: Layout, props: ChartProps): void {
  const { formatX = String, formatY = String, xs } = props;
  const line = readColour("--line");
  const text = readColour("--text-dim");
  ink.textBaseline = "middle";
  ink.textAlign = "right";
  for (const tick of ticks(place.low, place.high, (place.bottom - TOP) / 30)) {
    ink.fillStyle = line;
    ink.fillRect(place.left, Math.round(place.y(tick)), place.right - place.left, 1);
    ink.fillStyle = text;
    ink.fillText(formatY(tick), place.left - 6, Math.max(place.y(tick), 6));
  }
  const most = Math.floor((place.right - place.left) / TICK_PX);
  const marks = ticks(place.valueAtX(place.left), place.valueAtX(place.right), most);
  // With few positions, such as steps, each mark is one of them.
  const shown = xs.length <= most ? xs : marks;
  let last = "";
  for (const tick of shown) {
    const label = formatX(tick);
    const half = ink.measureText(label).width / 2;
    const x = Math.min(Math.max(place.x(tick), place.left), place.right + RIGHT - half);
    ink.textAlign = "center";
    if (label !== last) ink.fillText(label, x, place.bottom + 11);
    last = label;
  }
}

function drawSeries(ink: CanvasRenderingContext2D, place: Layout, props: ChartProps): void {
  const { series, kind = "line", xs } = props;
  const values = kind === "stack" ? stacked(series) : series.map((one) => one.values);
  // The tallest layer first, so that each colour covers what is not its own.
  const order = series.map((_, i) => i).filter((i) => !series[i]!.isLimit);
  if (kind === "stack") order.reverse();
  const limits = series.map((_, i) => i).filter((i) => series[i]!.isLimit);
  for (const i of [...order, ...limits]) {
    const colour = readColour(series[i]!.colour);
    ink.fillStyle = colour;
    ink.strokeStyle = colour;
    drawOne(ink, place, xs, values[i]!, series[i]!, kind);
  }
}

function drawOne(
  ink: CanvasRenderingContext2D,
  place: Layout,
  xs: readonly number[],
  values: readonly (number | null)[],
  series: Series,
  kind: NonNullable<ChartProps["kind"]>,
): void {
  if (!series.isLimit && (kind === "points" || kind === "bars")) {
    const size = kind === "bars" ? Math.max(1, (place.x(barWidth(xs)) - place.x(0)) * 0.8) : 4;
    values.forEach((value, i) => {
      if (value === null) return;
      const [x, y] = [place.x(xs[i]!), place.y(value)];
      if (kind === "bars") ink.fillRect(x - size / 2, y, size, place.y(0) - y);
      else ink.fillRect(x - size / 2, y - size / 2, size, size);
    });
    return;
  }
  const isFilled = !series.isLimit && kind !== "line";
  for (const known of stretches(values, series.isJoined)) {
    shadeRange(ink, place, xs, series, known);
    ink.beginPath();
    for (const i of known) ink.lineTo(place.x(xs[i]!), place.y(values[i]!));
    const [first, last] = [known[0]!, known.at(-1)!];
    // A line of one point would not show.
    if (first === last && !isFilled) {
      ink.fillRect(place.x(xs[first]!) - 1.5, place.y(values[first]!) - 1.5, 3, 3);
    }
    ink.setLineDash(series.isLimit ? [4, 3] : []);
    ink.lineWidth = isFilled ? 0.5 : 1.5;
    ink.stroke();
    if (!isFilled) continue;
    ink.lineTo(place.x(xs[last]!), place.y(0));
    ink.lineTo(place.x(xs[first]!), place.y(0));
    ink.globalAlpha = kind === "stack" ? 1 : 0.25;
    ink.fill();
    ink.globalAlpha = 1;
  }
  ink.setLineDash([]);
}

function shadeRange(
  ink: CanvasRenderingContext2D,
  place: Layout,
  xs: readonly number[],
  { lows, highs }: Series,
  known: readonly number[],
): void {
  if (!lows || !highs) return;
  const ranged = known.filter((i) => (lows[i] ?? highs[i] ?? null) !== null);
  ink.beginPath();
  for (const i of ranged) ink.lineTo(place.x(xs[i]!), place.y(highs[i]!));
  for (const i of ranged.reverse()) ink.lineTo(place.x(xs[i]!), place.y(lows[i]!));
  ink.globalAlpha = 0.2;
  ink.fill();
  ink.globalAlpha = 1;
}

/** A gap this many times as long as is usual is a pause. */
const PAUSE = 5;

/** Give the indices of every stretch without a gap.
 *
 * @param isJoined a gap as long as most, or a little longer, is none: it is seldom recorded
 */
export function stretches(values: readonly (number | null)[], isJoined = false): number[][] {
  const known = values.map((_, i) => i).filter((i) => values[i] !== null);
  const gaps = known.slice(1).map((at, i) => at - known[i]!);
  const usual = gaps.toSorted((a, b) => a - b)[gaps.length >> 1] ?? 1;
  const most = isJoined ? usual * PAUSE : 1;
  const found: number[][] = [];
  known.forEach((at, i) => {
    if (i > 0 && gaps[i - 1]! <= most) found.at(-1)!.push(at);
    else found.push([at]);
  });
  return found;
}
