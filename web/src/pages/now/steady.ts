/** Rows that stay where they are while somebody points at them or works in them. */

/** Take new rows in the order of the old ones; what is new comes last, what is gone goes. */
export function keepOrder<T>(
  before: readonly T[],
  now: readonly T[],
  keyOf: (row: T) => string,
): readonly T[] {
  const waiting = new Map(now.map((row) => [keyOf(row), row]));
  const kept: T[] = [];
  for (const old of before) {
    const row = waiting.get(keyOf(old));
    if (row === undefined) continue;
    kept.push(row);
    waiting.delete(keyOf(old));
  }
  return [...kept, ...waiting.values()];
}
