/**
 * The inverse of packed view frames: gzip, planes of bytes, runs and differences.
 *
 * The order of the streams and what each of them holds is given by the header's `streams`.
 */

import type { Column, ColumnEntry, FrameHeader } from "./frame";

type Streams = ReadonlyMap<string, Column>;

const WIDTHS = { u8: 1, u16: 2, u32: 4, f64: 8 } as const;

/**
 * Unpack the columns of a frame from the bytes behind its header.
 *
 * @throws Error if the encoding is not known or the bytes are damaged.
 */
export async function unpackColumns(
  header: FrameHeader,
  body: ArrayBuffer,
): Promise<Map<string, Column>> {
  if (header.encoding !== "gzip-planes") {
    throw new Error("The view frame is packed in a way this page does not know.");
  }
  const streams = readStreams(header["streams"] as ColumnEntry[], await gunzip(body));
  const made: Record<string, () => Column> = {
    start: () => starts(streams),
    session: () => fromDifferences(u32(streams, "session")),
    lane: () => fromRuns(streams, "run_lane"),
    row: () => fromRuns(streams, "run_row"),
    session_ids: () => sessionIds(streams),
  };
  const columns = new Map<string, Column>();
  for (const { name } of header.columns) {
    columns.set(name, made[name]?.() ?? streamOf(streams, name));
  }
  return columns;
}

async function gunzip(body: ArrayBuffer): Promise<Uint8Array> {
  const unpacked = new Blob([body]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(unpacked).arrayBuffer());
}

function readStreams(table: readonly ColumnEntry[], bytes: Uint8Array): Streams {
  const streams = new Map<string, Column>();
  let offset = 0;
  for (const { name, type, length } of table) {
    const width = WIDTHS[type];
    if (offset + length * width > bytes.length) {
      throw new Error(`The packed view frame ends inside "${name}".`);
    }
    const planes = bytes.subarray(offset, offset + length * width);
    streams.set(name, joinPlanes(planes, length, type));
    offset += length * width;
  }
  return streams;
}

/** Put the bytes of each number together again: all first bytes come first, and so on. */
function joinPlanes(planes: Uint8Array, length: number, type: ColumnEntry["type"]): Column {
  switch (type) {
    case "u8":
      return planes;
    case "u16": {
      const whole = new Uint16Array(length);
      for (let at = 0; at < length; at++) {
        whole[at] = planes[at]! | (planes[length + at]! << 8);
      }
      return whole;
    }
    case "u32": {
      const whole = new Uint32Array(length);
      for (let at = 0; at < length; at++) {
        whole[at] =
          planes[at]! |
          (planes[length + at]! << 8) |
          (planes[2 * length + at]! << 16) |
          (planes[3 * length + at]! << 24);
      }
      return whole;
    }
    case "f64": {
      const whole = new Uint8Array(length * 8);
      for (let at = 0; at < whole.length; at++) {
        whole[at] = planes[(at % 8) * length + ((at / 8) | 0)]!;
      }
      return new Float64Array(whole.buffer);
    }
  }
}

/** A start is the end of the span before it in its run, plus the gap. */
function starts(streams: Streams): Uint32Array {
  const gap = u32(streams, "gap");
  const dur = u32(streams, "dur");
  const made = new Uint32Array(gap.length);
  let at = 0;
  for (const length of u32(streams, "run_length")) {
    let reached = 0;
    for (let left = length; left > 0; left--, at++) {
      const start = (reached + gap[at]!) >>> 0;
      made[at] = start;
      reached = start + dur[at]!;
    }
  }
  return made;
}

function fromRuns(streams: Streams, name: string): Uint16Array {
  const values = streamOf(streams, name);
  const lengths = u32(streams, "run_length");
  const made = new Uint16Array(u32(streams, "gap").length);
  let at = 0;
  lengths.forEach((length, run) => {
    made.fill(values[run]!, at, at + length);
    at += length;
  });
  return made;
}

/** Undo zig-zag differences, modulo 2^32. */
function fromDifferences(values: Uint32Array): Uint32Array {
  const made = new Uint32Array(values.length);
  let sum = 0;
  for (let at = 0; at < values.length; at++) {
    const value = values[at]!;
    sum = (sum + ((value >>> 1) ^ -(value & 1))) | 0;
    made[at] = sum;
  }
  return made;
}

function sessionIds(streams: Streams): Uint32Array {
  const low = fromDifferences(u32(streams, "ids_low"));
  const high = fromDifferences(u32(streams, "ids_high"));
  const ids = new Uint32Array(low.length * 2);
  for (let at = 0; at < low.length; at++) {
    ids[2 * at] = low[at]!;
    ids[2 * at + 1] = high[at]!;
  }
  return ids;
}

function u32(streams: Streams, name: string): Uint32Array {
  return streamOf(streams, name) as Uint32Array;
}

function streamOf(streams: Streams, name: string): Column {
  const found = streams.get(name);
  if (found === undefined) {
    throw new Error(`The packed view frame has no stream "${name}".`);
  }
  return found;
}
