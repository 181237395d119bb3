/** A logarithmic axis of durations: where a length stands, and which lengths to write beside it. */
import { duration } from "./format";

export interface LogScale {
  low: number;
  high: number;
}

/** Give a scale that holds all lengths, at least a factor of two high. */
export function logScale(lengths: readonly number[]): LogScale {
  let [low, high] = [Infinity, 0];
  for (const length of lengths) {
    if (length <= 0) continue;
    if (length < low) low = length;
    if (length > high) high = length;
  }
  if (high === 0) return { low: 1e6, high: 1e9 };
  return { low: Math.min(low, high / 2), high };
}

/** Where a length stands, from 0 at the low end to 1. */
export function placeOf(scale: LogScale, length: number): number {
  const at = Math.log(Math.max(length, scale.low) / scale.low);
  return Math.min(at / Math.log(scale.high / scale.low), 1);
}

/** Which length stands there. */
export function lengthAt(scale: LogScale, place: number): number {
  return scale.low * (scale.high / scale.low) ** place;
}

const ROUND_NS: readonly number[] = [
  1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 5e9, 1e10, 3e10, 6e10, 3e11, 6e11, 1.8e12, 3.6e12,
  1.44e13, 8.64e13,
];
/** What a scale needs to be read. */
const LEAST_TICKS = 3;

/** Round lengths within the scale; closer ones if it is short. */
export function ticksOf(scale: LogScale): number[] {
  const inside = ROUND_NS.filter((one) => one >= scale.low && one <= scale.high);
  if (inside.length >= LEAST_TICKS) return inside;
  const power = 10 ** Math.floor(Math.log10(scale.low));
  const closer = [1, 2, 5, 10, 20, 50, 100, 200, 500]
    .map((one) => one * power)
    .filter((one) => one >= scale.low && one <= scale.high);
  return closer.length > 1 ? closer : [scale.low, scale.high];
}

/** Write a length beside an axis, where "2 s" says as much as "2.00 s". */
export function tickLabel(ns: number): string {
  return duration(ns)
    .replace(/(\.[1-9]*)0+(?= )/, "$1")
    .replace(/\.(?= )| 00 s$/, "");
}
