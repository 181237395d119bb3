/**
 * View frames: the one binary layout in which spans reach the page.
 *
 * Owns the header's shape and the reading of columns as views on the buffer. What the columns mean
 * for drawing is left to `spans.ts`; the inverse of the packed encoding is in `packed.ts`.
 */

import { unpackColumns } from "./packed";

export const OPEN_DURATION = 0xffffffff;
export const NO_SESSION = 0xffffffff;

/** The bits of a span's flags. */
export const FLAG = {
  error: 1,
  open: 2,
  stuck: 4,
  lost: 8,
  retried: 16,
  session: 32,
  wait: 64,
  hit: 128,
} as const;

/** The flags that paint a mark whatever the zoom; the others only tell what a span is. */
export const MARKED_FLAGS =
  FLAG.error | FLAG.open | FLAG.stuck | FLAG.lost | FLAG.retried | FLAG.hit;

export type ColumnType = "u8" | "u16" | "u32" | "f64";
export type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;

export interface ColumnEntry {
  readonly name: string;
  readonly type: ColumnType;
  readonly offset: number;
  readonly length: number;
}

/** A group holds the lanes that name it; `first_lane` is a position in the order shown. */
export interface LaneGroup {
  readonly label: string;
  readonly first_lane: number;
  readonly lanes: number;
}

export interface Lane {
  /** Stays the same in all frames of a run, while positions may not. */
  readonly id: number;
  readonly label: string;
  readonly group: number;
  readonly rows: number;
  readonly flags: number;
}

export interface FrameHeader {
  readonly kind: "raw" | "packed" | "tile" | "delta";
  readonly t0_ns: string;
  readonly t1_ns: string;
  readonly now_ns: string;
  readonly tick_ns: number;
  readonly seq: number;
  readonly by: string;
  readonly rows: number;
  readonly columns: readonly ColumnEntry[];
  readonly names: readonly string[];
  readonly name_roles: readonly number[];
  readonly roles: readonly string[];
  readonly groups: readonly LaneGroup[];
  readonly lanes: readonly Lane[];
  /** Lanes from top to bottom; null or missing: as they are. */
  readonly order?: readonly number[] | null;
  readonly total_spans: number;
  readonly total_lanes: number;
  /** Position of a tile's first lane among all. */
  readonly first_lane: number;
  readonly tick_rounded?: boolean;
  readonly encoding?: string;
  readonly [other: string]: unknown;
}

/** A decoded frame: its header, and its columns by name. */
export interface Frame {
  readonly header: FrameHeader;
  readonly columns: ReadonlyMap<string, Column>;
}

const MAGIC = "RSV1";
const PREAMBLE_BYTES = 8;

/**
 * Decode a frame of any kind; raw columns are views on the buffer, not copies.
 *
 * @throws Error if the bytes are no view frame or end too early.
 */
export async function decodeFrame(bytes: ArrayBuffer): Promise<Frame> {
  const { header, body } = readHeader(bytes);
  if (header.encoding === undefined || header.encoding === "none") {
    return { header, columns: viewColumns(header, bytes, body) };
  }
  return { header, columns: await unpackColumns(header, bytes.slice(body)) };
}

/** Give a column that a frame of this kind must have. */
export function column(frame: Frame, name: string): Column {
  const found = frame.columns.get(name);
  if (found === undefined) {
    throw new Error(`The view frame (${frame.header.kind}) has no column "${name}".`);
  }
  return found;
}

function readHeader(bytes: ArrayBuffer): { header: FrameHeader; body: number } {
  if (bytes.byteLength < PREAMBLE_BYTES || textOf(bytes, 0, 4) !== MAGIC) {
    throw new Error("This is no view frame: it does not begin with RSV1.");
  }
  const length = new DataView(bytes).getUint32(4, true);
  const body = PREAMBLE_BYTES + length;
  if (body > bytes.byteLength) {
    throw new Error("The view frame ends inside its header.");
  }
  return { header: JSON.parse(textOf(bytes, PREAMBLE_BYTES, length)) as FrameHeader, body };
}

function textOf(bytes: ArrayBuffer, offset: number, length: number): string {
  return new TextDecoder().decode(new Uint8Array(bytes, offset, length));
}

function viewColumns(header: FrameHeader, bytes: ArrayBuffer, body: number): Map<string, Column> {
  const columns = new Map<string, Column>();
  for (const entry of header.columns) {
    columns.set(entry.name, viewColumn(entry, bytes, body));
  }
  return columns;
}

function viewColumn(entry: ColumnEntry, bytes: ArrayBuffer, body: number): Column {
  const at = body + entry.offset;
  if (at + entry.length * WIDTH[entry.type] > bytes.byteLength) {
    throw new Error(`The view frame ends inside its column "${entry.name}".`);
  }
  return makeColumn(entry.type, bytes, at, entry.length);
}

export const WIDTH: Readonly<Record<ColumnType, number>> = { u8: 1, u16: 2, u32: 4, f64: 8 };

/** Lay a typed view over a part of a buffer. */
export function makeColumn(
  type: ColumnType,
  bytes: ArrayBuffer,
  offset: number,
  length: number,
): Column {
  switch (type) {
    case "u8":
      return new Uint8Array(bytes, offset, length);
    case "u16":
      return new Uint16Array(bytes, offset, length);
    case "u32":
      return new Uint32Array(bytes, offset, length);
    case "f64":
      return new Float64Array(bytes, offset, length);
  }
}
