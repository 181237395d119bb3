/** How many sessions were in flight at each pixel of a window, from the spans in the page. */

import { FLAG } from "./frame";
import type { TimeWindow } from "./scale";
import { endOf, type SpanTable } from "./spans";

const sessionRows = new WeakMap<SpanTable, Uint32Array>();

/** Count sessions in flight; fractions are sessions that began or ended within a pixel. */
export function inFlight(
  tables: readonly SpanTable[],
  window: TimeWindow,
  width: number,
  now: number,
): Float32Array {
  // Steps up and down, summed at the end: the cost is per session, not per pixel of it.
  const steps = new Float64Array(width + 2);
  for (const table of tables) {
    addSessions(steps, table, window, width, now);
  }
  const counts = new Float32Array(width);
  let level = 0;
  for (let x = 0; x < width; x++) {
    level += steps[x]!;
    counts[x] = Math.max(level, 0);
  }
  return counts;
}

function addSessions(
  steps: Float64Array,
  table: SpanTable,
  window: TimeWindow,
  width: number,
  now: number,
): void {
  const perTick = (table.tickNs * width) / (window.t1 - window.t0);
  const tick0 = (window.t0 - table.originNs) / table.tickNs;
  const nowTick = (now - table.originNs) / table.tickNs;
  for (const index of rowsOf(table)) {
    const x0 = Math.max((table.start[index]! - tick0) * perTick, 0);
    const x1 = Math.min((endOf(table, index, nowTick) - tick0) * perTick, width);
    if (x0 < x1) {
      const share = table.weight === null ? 1 : table.weight[index]! / 255;
      addStep(steps, x0, share);
      addStep(steps, x1, -share);
    }
  }
}

/** A step within a pixel counts for the rest of that pixel, and wholly from the next on. */
function addStep(steps: Float64Array, x: number, by: number): void {
  const pixel = Math.floor(x);
  const rest = pixel + 1 - x;
  steps[pixel]! += by * rest;
  steps[pixel + 1]! += by * (1 - rest);
}

function rowsOf(table: SpanTable): Uint32Array {
  let rows = sessionRows.get(table);
  if (rows === undefined) {
    const found: number[] = [];
    for (let index = 0; index < table.count; index++) {
      if ((table.flags[index]! & FLAG.session) !== 0) {
        found.push(index);
      }
    }
    rows = Uint32Array.from(found);
    sessionRows.set(table, rows);
  }
  return rows;
}
