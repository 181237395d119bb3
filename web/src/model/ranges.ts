/** Positions written as a few ranges, such as `0-64,128-192`. */

/**
 * Write positions as ranges of whole chunks, the second number of each left out; where that gives
 * too many ranges, as one that holds all.
 */
export function toRanges(positions: readonly number[], chunk: number, most: number): string {
  const chunks = [...new Set(positions.map((position) => Math.floor(position / chunk)))];
  chunks.sort((a, b) => a - b);
  const ranges: [number, number][] = [];
  for (const one of chunks) {
    const last = ranges[ranges.length - 1];
    if (last !== undefined && last[1] === one) {
      last[1] = one + 1;
    } else {
      ranges.push([one, one + 1]);
    }
  }
  const first = ranges[0];
  const end = ranges[ranges.length - 1];
  const kept =
    ranges.length > most && first && end
      ? [[first[0], end[1]] as const]
      : (ranges as readonly (readonly [number, number])[]);
  return kept.map(([low, high]) => `${low * chunk}-${high * chunk}`).join(",");
}
