/**
 * Sums over a hand-drawn area, from the columns that are in the page.
 *
 * The server answers the same question exactly; this is for the report, where there is none.
 * Percentiles are by nearest rank: the value at position ceil(p * n) of the sorted list.
 */

import { FLAG } from "./frame";
import { endOf, firstEndingAfter, rangeOf, type SpanTable } from "./spans";

export interface AreaBox {
  readonly t0: number;
  readonly t1: number;
  readonly lanes: readonly number[];
}

export interface AreaRow {
  readonly label: string;
  readonly count: number;
  readonly errors: number;
  readonly open: number;
  readonly total_ns: number;
  readonly self_ns: number;
  readonly p50_ns: number;
  readonly p95_ns: number;
  readonly max_ns: number;
}

interface Sums {
  durations: number[];
  self: number;
  errors: number;
  open: number;
}

/** Sum the spans that overlap an area by their name; spans count with their whole duration. */
export function sumArea(
  tables: readonly SpanTable[],
  names: readonly string[],
  box: AreaBox,
  now: number,
): AreaRow[] {
  const byName = new Map<number, Sums>();
  for (const table of tables) {
    for (const lane of box.lanes) {
      addLane(table, lane, box, now, byName);
    }
  }
  return [...byName]
    .map(([name, sums]) => rowOf(names[name] ?? "?", sums))
    .sort((a, b) => b.total_ns - a.total_ns || (a.label < b.label ? -1 : 1));
}

/** The value at position ceil(p * n) of a sorted list. */
export function nearestRank(sorted: readonly number[], percent: number): number {
  return sorted[Math.max(Math.ceil((percent * sorted.length) / 100), 1) - 1] ?? 0;
}

function addLane(
  table: SpanTable,
  lane: number,
  box: AreaBox,
  now: number,
  into: Map<number, Sums>,
): void {
  const tick0 = (box.t0 - table.originNs) / table.tickNs;
  const tick1 = (box.t1 - table.originNs) / table.tickNs;
  const nowTick = (now - table.originNs) / table.tickNs;
  const rows = (table.laneFirst[lane + 1] ?? 0) - (table.laneFirst[lane] ?? 0);
  for (let row = 0; row < rows; row++) {
    const [low, high] = rangeOf(table, lane, row);
    const first = firstEndingAfter(table, low, high, tick0);
    for (let index = first; index < high && table.start[index]! < tick1; index++) {
      addSpan(table, index, rows, nowTick, into);
    }
  }
}

function addSpan(
  table: SpanTable,
  index: number,
  rows: number,
  nowTick: number,
  into: Map<number, Sums>,
): void {
  const name = table.name[index]!;
  const sums = into.get(name) ?? { durations: [], self: 0, errors: 0, open: 0 };
  into.set(name, sums);
  const length = endOf(table, index, nowTick) - table.start[index]!;
  sums.durations.push(length * table.tickNs);
  sums.self += (length - coveredBelow(table, index, rows, nowTick)) * table.tickNs;
  sums.errors += table.flags[index]! & FLAG.error ? 1 : 0;
  sums.open += table.flags[index]! & FLAG.open ? 1 : 0;
}

/** Ticks of a span covered by spans of the same session in the rows under it. */
function coveredBelow(table: SpanTable, index: number, rows: number, nowTick: number): number {
  const start = table.start[index]!;
  const end = endOf(table, index, nowTick);
  const inside: [number, number][] = [];
  for (let row = table.row[index]! + 1; row < rows; row++) {
    const [low, high] = rangeOf(table, table.lane[index]!, row);
    const first = firstEndingAfter(table, low, high, start);
    for (let at = first; at < high && table.start[at]! < end; at++) {
      if (table.session[at] === table.session[index]) {
        inside.push([Math.max(table.start[at]!, start), Math.min(endOf(table, at, nowTick), end)]);
      }
    }
  }
  return unionLength(inside);
}

function unionLength(intervals: [number, number][]): number {
  intervals.sort((a, b) => a[0] - b[0]);
  let covered = 0;
  let reached = -Infinity;
  for (const [start, end] of intervals) {
    covered += Math.max(end - Math.max(start, reached), 0);
    reached = Math.max(reached, end);
  }
  return covered;
}

function rowOf(label: string, { durations, self, errors, open }: Sums): AreaRow {
  durations.sort((a, b) => a - b);
  return {
    label,
    count: durations.length,
    errors,
    open,
    total_ns: durations.reduce((sum, each) => sum + each, 0),
    self_ns: self,
    p50_ns: nearestRank(durations, 50),
    p95_ns: nearestRank(durations, 95),
    max_ns: durations[durations.length - 1] ?? 0,
  };
}
