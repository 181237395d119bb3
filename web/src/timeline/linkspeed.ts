/** How fast the way to the server is, by what came over it last. */

/** Give bytes a millisecond of the last answer whose address has a word in it; 0 if unknown. */
export function bytesPerMs(word: string): number {
  const entries = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
  const last = entries.filter((entry) => entry.name.includes(word)).at(-1);
  if (last === undefined) {
    return 0;
  }
  // From the first byte on: before it the server was at work, not the link.
  return last.encodedBodySize / Math.max(last.responseEnd - last.responseStart, 1);
}
