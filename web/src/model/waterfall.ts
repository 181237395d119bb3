/** A path of many segments as few rows: the long ones stand alone, the short ones are summed up. */
import type { Segment } from "./answers";

export interface Waterfall {
  /** In order of time. */
  rows: Segment[];
  /** How many are too short for a row of their own. */
  restCount: number;
  restNs: number;
}

function lengthOf(segment: Segment): number {
  return segment.end_ns - segment.start_ns;
}

/** Divide a path; rows and rest add up to it.
 *
 * @param most how many segments have a row of their own
 * @param share of the whole, which a segment needs for that
 */
export function toWaterfall(segments: readonly Segment[], most: number, share: number): Waterfall {
  const whole = segments.reduce((sum, one) => sum + lengthOf(one), 0);
  const long = new Set(
    [...segments]
      .sort((a, b) => lengthOf(b) - lengthOf(a))
      .slice(0, most)
      .filter((one) => lengthOf(one) >= whole * share),
  );
  const rows = segments.filter((one) => long.has(one));
  const kept = rows.reduce((sum, one) => sum + lengthOf(one), 0);
  return { rows, restCount: segments.length - rows.length, restNs: whole - kept };
}
