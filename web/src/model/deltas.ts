/**
 * A live run in the page: the first load, and what has come since, kept sorted beside it.
 *
 * New spans collect in a small second table, so that a delta costs little however large the first
 * load was; now and then the two become one. Ends and changed flags are written in place.
 */

import { column, type Frame, type FrameHeader, NO_SESSION, OPEN_DURATION } from "./frame";
import { type Columns, firstStartingAt, indexed, mergeColumns, rangeOf } from "./spans";
import { type SpanTable, tableOf } from "./spans";

/** Where an open span lies, so that its end finds it. */
interface OpenPlace {
  readonly lane: number;
  readonly row: number;
  readonly start: number;
}

export interface LiveTables {
  readonly header: FrameHeader;
  readonly main: SpanTable;
  readonly newer: SpanTable | null;
  readonly sessionIds: Uint32Array;
  /** The index of each session by its id. */
  readonly sessions: Map<string, number>;
  readonly open: Map<number, OpenPlace>;
}

/** At so many new spans the two tables become one. */
const MERGE_AT = 60_000;

/** Begin with a frame that holds the whole run. */
export function liveTables(frame: Frame, baseNs: bigint): LiveTables {
  const sessionIds = column(frame, "session_ids") as Uint32Array;
  const sessions = new Map<string, number>();
  for (let index = 0; index * 2 < sessionIds.length; index++) {
    sessions.set(idOf(sessionIds, index), index);
  }
  const open = new Map<number, OpenPlace>();
  noteOpen(open, frame);
  const main = tableOf(ownColumns(frame), baseNs);
  return { header: frame.header, main, newer: null, sessionIds, sessions, open };
}

/**
 * Take in a delta.
 *
 * @throws Error if it does not continue what is here; then everything has to be loaded anew.
 */
export function applyDelta(live: LiveTables, delta: Frame, baseNs: bigint): LiveTables {
  if (delta.header.t0_ns !== live.header.t0_ns) {
    throw new Error("The delta counts time from elsewhere than the spans that are here.");
  }
  const rescaled = inTicksOf(delta, live.header.tick_ns);
  const { header } = rescaled;
  const sessionIds = grownIds(live, rescaled);
  const fresh = tableOf(rescaled, baseNs);
  noteOpen(live.open, rescaled);
  endOpen(live, rescaled);
  const newer = live.newer === null ? fresh : mergeColumns(live.newer, fresh);
  const isLarge = newer.start.length > MERGE_AT;
  return {
    header,
    main: reindexed(isLarge ? mergeColumns(live.main, newer) : live.main, header, baseNs),
    newer: isLarge || newer.start.length === 0 ? null : indexed(newer, header, baseNs),
    sessionIds,
    sessions: live.sessions,
    open: live.open,
  };
}

/** The tables in the order the painter takes them. */
export function tablesOf(live: LiveTables): SpanTable[] {
  return live.newer === null ? [live.main] : [live.main, live.newer];
}

/** Ends are written in place, so durations and flags must not be views of a shared buffer. */
function ownColumns(frame: Frame): Frame {
  const columns = new Map(frame.columns);
  columns.set("dur", column(frame, "dur").slice());
  columns.set("flags", column(frame, "flags").slice());
  return { header: frame.header, columns };
}

function noteOpen(open: Map<number, OpenPlace>, frame: Frame): void {
  const rows = frame.columns.get("open_index");
  const handles = frame.columns.get("open_handle");
  const [lane, row, start] = ["lane", "row", "start"].map((name) => column(frame, name));
  rows?.forEach((at, index) => {
    const place = { lane: lane![at]!, row: row![at]!, start: start![at]! };
    open.set(handles![index]!, place);
  });
}

/** Spans with a handle that have ended, or whose flags are others now. */
function endOpen(live: LiveTables, delta: Frame): void {
  const handles = delta.columns.get("ended_handle");
  const durations = delta.columns.get("ended_dur");
  const flags = delta.columns.get("ended_flags");
  handles?.forEach((handle, index) => {
    const place = live.open.get(handle);
    if (place !== undefined) {
      setEnd(live, place, durations![index]!, flags![index]!);
    }
    if (durations![index] !== OPEN_DURATION) {
      live.open.delete(handle);
    }
  });
}

function setEnd(live: LiveTables, place: OpenPlace, dur: number, flags: number): void {
  for (const table of tablesOf(live)) {
    const index = find(table, place);
    if (index !== null) {
      table.dur[index] = dur;
      table.flags[index] = flags;
    }
  }
}

function find(table: SpanTable, { lane, row, start }: OpenPlace): number | null {
  const [low, high] = rangeOf(table, lane, row);
  let at = firstStartingAt(table, low, high, start);
  // Spans without length may share a start with the one that follows; the last is meant.
  while (at + 1 < high && table.start[at + 1] === start) {
    at += 1;
  }
  return at < high && table.start[at] === start ? at : null;
}

/** Count the times of a delta in the coarser ticks of what is here; all are rounded down. */
function inTicksOf(delta: Frame, tickNs: number): Frame {
  const factor = delta.header.tick_ns / tickNs;
  if (factor === 1) {
    return delta;
  }
  const start = column(delta, "start");
  const dur = column(delta, "dur");
  const columns = new Map(delta.columns);
  const coarse = (tick: number): number => Math.floor(tick * factor + 1e-9);
  columns.set("start", start.map(coarse));
  columns.set(
    "dur",
    dur.map((length, index) =>
      length === OPEN_DURATION ? length : coarse(start[index]! + length) - coarse(start[index]!),
    ),
  );
  const ended = delta.columns.get("ended_dur");
  if (ended) {
    const rounded = ended.map((length) => (length === OPEN_DURATION ? length : coarse(length)));
    columns.set("ended_dur", rounded);
  }
  return { header: { ...delta.header, tick_ns: tickNs }, columns };
}

/** Lanes may have come, or got more rows; only then the index of rows is made anew. */
function reindexed(columns: Columns | SpanTable, header: FrameHeader, baseNs: bigint): SpanTable {
  const rows = header.lanes.reduce((sum, lane) => sum + Math.max(lane.rows, 1), 0);
  const isSame =
    "laneFirst" in columns &&
    columns.laneFirst.length === header.lanes.length + 1 &&
    columns.rowFirst.length === rows + 1;
  return isSame ? columns : indexed(columns, header, baseNs);
}

/** Number the sessions of a delta as those that are here, and add the new ones. */
function grownIds(live: LiveTables, delta: Frame): Uint32Array {
  const ids = column(delta, "session_ids") as Uint32Array;
  const added: number[] = [];
  const numbers: number[] = [];
  for (let index = 0; index * 2 < ids.length; index++) {
    const id = idOf(ids, index);
    let number = live.sessions.get(id);
    if (number === undefined) {
      number = live.sessions.size;
      live.sessions.set(id, number);
      added.push(ids[index * 2]!, ids[index * 2 + 1]!);
    }
    numbers.push(number);
  }
  const session = column(delta, "session") as Uint32Array;
  session.forEach((local, at) => {
    session[at] = numbers[local] ?? NO_SESSION;
  });
  return added.length === 0 ? live.sessionIds : joined(live.sessionIds, added);
}

function joined(before: Uint32Array, added: readonly number[]): Uint32Array {
  const all = new Uint32Array(before.length + added.length);
  all.set(before);
  all.set(added, before.length);
  return all;
}

/** Write the id of a session as the server does: sixteen hexadecimal digits. */
export function idOf(ids: Uint32Array, session: number): string {
  const word = (at: number): string => ids[at]!.toString(16).padStart(8, "0");
  return word(session * 2 + 1) + word(session * 2);
}
