/**
 * Which span is where: found by binary search in its lane, there is no scene graph.
 *
 * Also finds neighbours of a span, and what ran at one moment.
 */

import { FLAG } from "./frame";
import type { LaneBox, LaneLayout } from "./lanes";
import { boxesBetween } from "./lanes";
import { endOf, firstEndingAfter, firstStartingAt, rangeOf, type SpanTable } from "./spans";

/** A span of one of the tables in use. */
export interface SpanRef {
  readonly table: SpanTable;
  readonly index: number;
}

/** A row of a lane under a point. */
export interface RowRef {
  readonly lane: number;
  readonly row: number;
}

/** Give the row under a height of the canvas (CSS pixels from its top). */
export function rowAt(layout: LaneLayout, y: number, scroll: number): RowRef | null {
  const isInPinned = y < layout.pinnedHeight;
  const at = isInPinned ? y : y - layout.pinnedHeight + scroll;
  const boxes: readonly LaneBox[] = isInPinned ? layout.pinned : layout.lanes;
  const box = boxesBetween(boxes, at, at + 1)[0];
  if (box === undefined || at < box.y) {
    return null;
  }
  return { lane: box.lane, row: Math.floor((at - box.y) / layout.rowHeight) };
}

/** Give the span of a row at a time; a near one counts if it is within `grace` nanoseconds. */
export function spanAt(
  tables: readonly SpanTable[],
  { lane, row }: RowRef,
  time: number,
  grace: number,
  now: number,
): SpanRef | null {
  let best: SpanRef | null = null;
  let bestGap = grace;
  for (const table of tables) {
    const tick = (time - table.originNs) / table.tickNs;
    const nowTick = (now - table.originNs) / table.tickNs;
    const [low, high] = rangeOf(table, lane, row);
    const after = firstEndingAfter(table, low, high, tick);
    for (const index of [after - 1, after]) {
      if (index >= low && index < high) {
        const before = (table.start[index]! - tick) * table.tickNs;
        const past = (tick - endOf(table, index, nowTick)) * table.tickNs;
        const gap = Math.max(before, past, 0);
        if (gap <= bestGap) {
          best = { table, index };
          bestGap = gap;
        }
      }
    }
  }
  return best;
}

/** Give the span before (-1) or after (1) one in its row; null at the end of the row. */
export function neighbourOf(
  tables: readonly SpanTable[],
  from: SpanRef,
  direction: 1 | -1,
): SpanRef | null {
  const start = startNs(from);
  const row = { lane: from.table.lane[from.index]!, row: from.table.row[from.index]! };
  let best: SpanRef | null = null;
  for (const table of tables) {
    const [low, high] = rangeOf(table, row.lane, row.row);
    const tick = (start - table.originNs) / table.tickNs;
    const at = firstStartingAt(table, low, high, tick);
    const candidates = direction === 1 ? [at, at + 1] : [at - 1];
    for (const index of candidates) {
      const isOther =
        index >= low && index < high && (startNs({ table, index }) - start) * direction > 0;
      if (isOther && (best === null || isNearer({ table, index }, best, start))) {
        best = { table, index };
      }
    }
  }
  return best;
}

/** Nanoseconds from the run's first moment to a span's start. */
export function startNs({ table, index }: SpanRef): number {
  return table.originNs + table.start[index]! * table.tickNs;
}

/** Nanoseconds from the run's first moment to a span's end; open ones end now. */
export function endNs({ table, index }: SpanRef, now: number): number {
  const nowTick = (now - table.originNs) / table.tickNs;
  return table.originNs + endOf(table, index, nowTick) * table.tickNs;
}

/** What a frame's spans did at one moment. */
export interface Moment {
  notStarted: number;
  running: number;
  ended: number;
  /** Running spans inside sessions, by index of their name. */
  readonly byName: Map<number, number>;
}

/** Count sessions not started, running and ended at a time, and running phases by name. */
export function momentAt(tables: readonly SpanTable[], time: number, now: number): Moment {
  const moment: Moment = { notStarted: 0, running: 0, ended: 0, byName: new Map() };
  for (const table of tables) {
    const tick = (time - table.originNs) / table.tickNs;
    const nowTick = (now - table.originNs) / table.tickNs;
    for (let row = 0; row + 1 < table.rowFirst.length; row++) {
      countRow(table, table.rowFirst[row]!, table.rowFirst[row + 1]!, tick, nowTick, moment);
    }
  }
  return moment;
}

function countRow(
  table: SpanTable,
  low: number,
  high: number,
  tick: number,
  nowTick: number,
  moment: Moment,
): void {
  const at = firstEndingAfter(table, low, high, tick);
  for (let index = low; index < high; index++) {
    if ((table.flags[index]! & FLAG.session) === 0) {
      continue;
    }
    const weight = table.tally?.[index] ?? 1;
    if (index < at) {
      moment.ended += weight;
    } else if (table.start[index]! > tick) {
      moment.notStarted += weight;
    } else {
      moment.running += weight;
    }
  }
  const isRunning = at < high && table.start[at]! <= tick && endOf(table, at, nowTick) > tick;
  if (isRunning && (table.flags[at]! & FLAG.session) === 0) {
    const name = table.name[at]!;
    moment.byName.set(name, (moment.byName.get(name) ?? 0) + 1);
  }
}

function isNearer(candidate: SpanRef, best: SpanRef, start: number): boolean {
  return Math.abs(startNs(candidate) - start) < Math.abs(startNs(best) - start);
}
