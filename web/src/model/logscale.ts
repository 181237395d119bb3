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
  1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 5e9, 1e10, 3e10, 6e10, 3e11, 6e11, 1.8e12, 3.6e12, 1.44e13,
  8.64e13,
];

/** Round lengths within the scale. */
export function ticksOf(scale: LogScale): number[] {
  const inside = ROUND_NS.filter((one) => one >= scale.low && one <= scale.high);
  return inside.length > 0 ? inside : [scale.low, scale.high];
}

/** Write a length beside an axis, where "2 s" says as much as "2.00 s". */
export function tickLabel(ns: number): string {
  return duration(ns).replace(/\.0+(?= )/, "");
}
