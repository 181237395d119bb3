/**
 * Spans in the form that drawing and hit tests read: sorted columns with an index of their rows.
 *
 * A table comes from any kind of frame. Tiles hold cells that stand for many short spans; they
 * become rows with a weight (how much of the cell was covered) and a tally (how many spans).
 */

import { column, type Frame, type FrameHeader, NO_SESSION, OPEN_DURATION } from "./frame";
import { FIRST_OTHER_SLOT, slotsOfNames } from "./slots";

/** Sorted by lane, row, start; spans of one (lane, row) do not overlap. Times are ticks. */
export interface SpanTable {
  readonly count: number;
  readonly start: Uint32Array;
  readonly dur: Uint32Array;
  readonly session: Uint32Array;
  readonly lane: Uint16Array;
  readonly row: Uint16Array;
  readonly name: Uint16Array;
  readonly flags: Uint8Array;
  /** The colour slot of each span, see `slots.ts`. */
  readonly slot: Uint8Array;
  /** Share covered, 0 to 255; null where every row is a whole span. */
  readonly weight: Uint8Array | null;
  /** Spans merged into the row; null where every row is one span. */
  readonly tally: Uint32Array | null;
  readonly longest: Uint32Array | null;
  /** Index of the first span of each (lane, row), see `rangeOf`. */
  readonly rowFirst: Uint32Array;
  readonly laneFirst: Uint32Array;
  readonly tickNs: number;
  /** Nanoseconds from the run's first moment to tick zero. */
  readonly originNs: number;
}

export interface Columns {
  start: Uint32Array;
  dur: Uint32Array;
  session: Uint32Array;
  lane: Uint16Array;
  row: Uint16Array;
  name: Uint16Array;
  flags: Uint8Array;
  slot: Uint8Array;
  weight: Uint8Array | null;
  tally: Uint32Array | null;
  longest: Uint32Array | null;
}

/** Make the table of a frame; `baseNs` is the run's first moment. */
export function tableOf(frame: Frame, baseNs: bigint): SpanTable {
  const slots = slotsOfNames(frame.header);
  const spans = spanColumns(frame, slots);
  const cells = frame.columns.has("cell_lane") ? cellColumns(frame, slots) : null;
  const columns = cells === null ? spans : mergeColumns(withWeights(spans), cells);
  return indexed(columns, frame.header, baseNs);
}

/** Index sorted columns as a table. */
export function indexed(columns: Columns, header: FrameHeader, baseNs: bigint): SpanTable {
  const { laneFirst, rowFirst } = indexRows(columns, header);
  return {
    ...columns,
    count: columns.start.length,
    laneFirst,
    rowFirst,
    tickNs: header.tick_ns,
    originNs: Number(BigInt(header.t0_ns) - baseNs),
  };
}

/** Give the half-open range of the spans of one (lane, row). */
export function rangeOf(table: SpanTable, lane: number, row: number): [number, number] {
  if (lane + 1 >= table.laneFirst.length) {
    return [0, 0];
  }
  const at = (table.laneFirst[lane] ?? 0) + row;
  if (at >= (table.laneFirst[lane + 1] ?? 0)) {
    return [0, 0];
  }
  return [table.rowFirst[at] ?? 0, table.rowFirst[at + 1] ?? 0];
}

/** Give the end of a span in ticks; open ones end now. */
export function endOf(table: SpanTable, index: number, nowTick: number): number {
  const dur = table.dur[index] ?? 0;
  const start = table.start[index] ?? 0;
  return dur === OPEN_DURATION ? Math.max(nowTick, start) : start + dur;
}

/** Give the first index in [low, high) whose span is not over before a tick. */
export function firstEndingAfter(
  table: SpanTable,
  low: number,
  high: number,
  tick: number,
): number {
  const { start, dur } = table;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const length = dur[middle]!;
    const from = start[middle]!;
    if (length !== OPEN_DURATION && from < tick && from + length <= tick) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** Give the first index in [low, high) whose span starts at or after a tick. */
export function firstStartingAt(table: SpanTable, low: number, high: number, tick: number): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (table.start[middle]! < tick) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

function spanColumns(frame: Frame, slots: Uint8Array): Columns {
  const name = column(frame, "name") as Uint16Array;
  const slot = new Uint8Array(name.length);
  for (let index = 0; index < name.length; index++) {
    slot[index] = slots[name[index]!] as number;
  }
  return {
    start: column(frame, "start") as Uint32Array,
    dur: column(frame, "dur") as Uint32Array,
    session: column(frame, "session") as Uint32Array,
    lane: column(frame, "lane") as Uint16Array,
    row: column(frame, "row") as Uint16Array,
    name,
    flags: column(frame, "flags") as Uint8Array,
    slot,
    weight: null,
    tally: null,
    longest: null,
  };
}

function withWeights(columns: Columns): Columns {
  const count = columns.start.length;
  return {
    ...columns,
    weight: new Uint8Array(count).fill(255),
    tally: new Uint32Array(count).fill(1),
    longest: columns.dur,
  };
}

/** Turn the cells of a tile into weighted rows, one pixel long. */
function cellColumns(frame: Frame, slots: Uint8Array): Columns {
  const lane = column(frame, "cell_lane") as Uint16Array;
  const name = column(frame, "cell_name") as Uint16Array;
  const roles = column(frame, "cell_role") as Uint8Array;
  const slot = roles.map((role, index) => {
    const named = slots[name[index]!] ?? FIRST_OTHER_SLOT;
    return role < FIRST_OTHER_SLOT ? role : Math.max(named, FIRST_OTHER_SLOT);
  });
  return {
    ...cellTimes(frame),
    session: new Uint32Array(lane.length).fill(NO_SESSION),
    lane,
    row: column(frame, "cell_row") as Uint16Array,
    name,
    flags: column(frame, "cell_flags") as Uint8Array,
    slot,
    weight: column(frame, "cell_alpha") as Uint8Array,
    tally: column(frame, "cell_count") as Uint32Array,
    longest: column(frame, "cell_longest") as Uint32Array,
  };
}

/** Ticks may begin before the window whose pixels the cells are. */
function cellTimes(frame: Frame): { start: Uint32Array; dur: Uint32Array } {
  const { header } = frame;
  const pixels = column(frame, "cell_x") as Uint16Array;
  const [from, until] = header["window"] as [string, string];
  const first = Number(BigInt(from) - BigInt(header.t0_ns)) / header.tick_ns;
  const perPixel =
    Number(BigInt(until) - BigInt(from)) / header.tick_ns / Math.max(Number(header["width"]), 1);
  const start = new Uint32Array(pixels.length);
  const dur = new Uint32Array(pixels.length);
  for (let index = 0; index < pixels.length; index++) {
    const at = Math.round(first + pixels[index]! * perPixel);
    start[index] = at;
    dur[index] = Math.max(Math.round(first + (pixels[index]! + 1) * perPixel) - at, 1);
  }
  return { start, dur };
}

function indexRows(
  columns: Columns,
  header: FrameHeader,
): { laneFirst: Uint32Array; rowFirst: Uint32Array } {
  const laneFirst = new Uint32Array(header.lanes.length + 1);
  header.lanes.forEach((lane, index) => {
    laneFirst[index + 1] = (laneFirst[index] ?? 0) + Math.max(lane.rows, 1);
  });
  const rows = laneFirst[header.lanes.length] ?? 0;
  const rowFirst = new Uint32Array(rows + 1);
  for (let index = 0; index < columns.lane.length; index++) {
    const at = (laneFirst[columns.lane[index]!] ?? 0) + columns.row[index]!;
    rowFirst[at + 1] = rowFirst[at + 1]! + 1;
  }
  for (let at = 0; at < rows; at++) {
    rowFirst[at + 1] = rowFirst[at + 1]! + rowFirst[at]!;
  }
  return { laneFirst, rowFirst };
}

/** Merge two sorted sets of columns into one; equal positions keep the first set's order. */
export function mergeColumns(a: Columns, b: Columns): Columns {
  const order = mergeOrder(a, b);
  const split = a.start.length;
  const pick = <T extends Uint8Array | Uint16Array | Uint32Array>(
    from: T,
    other: T,
    into: T,
  ): T => {
    for (let index = 0; index < order.length; index++) {
      const at = order[index]!;
      into[index] = (at < split ? from[at] : other[at - split]) as number;
    }
    return into;
  };
  const u8 = (): Uint8Array => new Uint8Array(order.length);
  const u16 = (): Uint16Array => new Uint16Array(order.length);
  const u32 = (): Uint32Array => new Uint32Array(order.length);
  return {
    start: pick(a.start, b.start, u32()),
    dur: pick(a.dur, b.dur, u32()),
    session: pick(a.session, b.session, u32()),
    lane: pick(a.lane, b.lane, u16()),
    row: pick(a.row, b.row, u16()),
    name: pick(a.name, b.name, u16()),
    flags: pick(a.flags, b.flags, u8()),
    slot: pick(a.slot, b.slot, u8()),
    weight: a.weight && b.weight ? pick(a.weight, b.weight, u8()) : null,
    tally: a.tally && b.tally ? pick(a.tally, b.tally, u32()) : null,
    longest: a.longest && b.longest ? pick(a.longest, b.longest, u32()) : null,
  };
}

/** Positions in merged order; those of the second set come after the first set's count. */
export function mergeOrder(a: Columns, b: Columns): Uint32Array {
  const order = new Uint32Array(a.start.length + b.start.length);
  let i = 0;
  let j = 0;
  for (let at = 0; at < order.length; at++) {
    const takeSecond = i >= a.start.length || (j < b.start.length && isBefore(b, j, a, i));
    order[at] = takeSecond ? a.start.length + j++ : i++;
  }
  return order;
}

function isBefore(a: Columns, i: number, b: Columns, j: number): boolean {
  const lane = a.lane[i]! - b.lane[j]!;
  if (lane !== 0) {
    return lane < 0;
  }
  const row = a.row[i]! - b.row[j]!;
  return row !== 0 ? row < 0 : a.start[i]! < b.start[j]!;
}
