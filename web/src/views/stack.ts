/** Series that are drawn on top of each other. */

export interface Series {
  label: string;
  /** A custom property of the style sheet. */
  colour: string;
  values: readonly (number | null)[];
  /** The range around each value, shaded. */
  lows?: readonly (number | null)[];
  highs?: readonly (number | null)[];
  /** Draws a line also over what is missing. */
  isJoined?: boolean;
  /** Draws as a dashed line without area, such as a capacity. */
  isLimit?: boolean;
}

/** Add series up, the first at the bottom; limits stay as they are. */
export function stacked(series: readonly Series[]): (number | null)[][] {
  let below: number[] = [];
  return series.map((one) => {
    if (one.isLimit) return [...one.values];
    below = one.values.map((value, i) => (value ?? 0) + (below[i] ?? 0));
    return below;
  });
}

/** Which layer of a stack lies at a height. */
export function layerAt(series: readonly Series[], index: number, y: number): number {
  const tops = stacked(series);
  const found = tops.findIndex((one, i) => !series[i]!.isLimit && y <= (one[index] ?? 0));
  return found < 0 ? series.length - 1 : found;
}
