/** From the answer about a metric to what is drawn: positions, lines, and the range around them. */
import type { Series, SeriesLine } from "./answers";
import { visible } from "./format";

export type Axis = "step" | "time";
type Values = (number | null)[];

export interface MetricLine {
  label: string;
  values: Values;
  lows: Values;
  highs: Values;
}

export interface MetricLines {
  /** Steps, or seconds since some time. */
  xs: number[];
  lines: MetricLine[];
  /** What lines show, in a sentence for each kind of them. */
  says: string[];
}

/** Processes tell of their counters about once a second; shorter stretches would flicker. */
const LEAST_RATE_NS = 5e9;

/** Lay a metric out along its axis.
 *
 * @param fromNs the time that seconds are counted from
 * @param sinceNs leaves out what is earlier
 */
export function metricLines(series: Series, fromNs: number, sinceNs = 0): MetricLines {
  const { positions, width_ns, lines } = series;
  const isCounted = lines.every((line) => line.type === "counter");
  const each = isCounted && width_ns ? Math.max(1, Math.ceil(LEAST_RATE_NS / width_ns)) : 1;
  const width = (width_ns ?? 0) * each;
  const kept = positions.map((_, i) => i).filter((i) => i % each === 0 && positions[i]! >= sinceNs);
  const pick = (values: Values): Values => kept.map((i) => values[i] ?? null);
  const isMixed = lines.some((line) => line.type !== lines[0]!.type);
  return {
    xs: kept.map((i) => (width ? (positions[i]! + width / 2 - fromNs) / 1e9 : positions[i]!)),
    lines: lines.map((line) => {
      const label = labelOf(line) + (isMixed ? ` (${line.type})` : "");
      const [middle, low, high] = line.p50.length
        ? [line.p50, line.p50, line.p95]
        : [line.values, line.lows, line.highs];
      const rate = (i: number): number => sum(line.values.slice(i, i + each)) / (width / 1e9);
      const values = width && line.type === "counter" ? kept.map(rate) : pick(middle);
      return { label, values, lows: pick(low), highs: pick(high) };
    }),
    says: [...new Set(lines.map((line) => saying(line, width > 0)))],
  };
}

function saying({ type, p50 }: SeriesLine, isTime: boolean): string {
  if (type === "counter") return isTime ? "A counter: how much a second." : "A counter: how much.";
  return p50.length
    ? "A histogram: the median, shaded up to the 95th percentile."
    : `A ${type}: the mean, shaded from the least to the most.`;
}

function sum(values: Values): number {
  return values.reduce<number>((total, one) => total + (one ?? 0), 0);
}

function labelOf({ labels }: SeriesLine): string {
  const parts = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return visible(parts.join(", ") || "all");
}
