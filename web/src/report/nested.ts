/** The timeline of a report: makes a raw view frame of what tells each span by its parent.
 *
 * The layout is told in `rollscope/reports/nesting.py`, whose inverse this is.
 */
import { type ColumnEntry, makeColumn, OPEN_DURATION, WIDTH } from "../model/frame";

interface Head {
  tailed: number[];
  streams: { name: string; width: number; length: number }[];
}

/** Give the bytes of the raw frame. */
export function unnest(bytes: ArrayBuffer): ArrayBuffer {
  const view = new DataView(bytes);
  const headLength = view.getUint32(0, true);
  const head = JSON.parse(text(bytes, 4, headLength)) as Head;
  const keptAt = 8 + headLength;
  const keptLength = view.getUint32(keptAt - 4, true);
  const { columns: table } = JSON.parse(text(bytes, keptAt + 8, keptLength - 8)) as {
    columns: ColumnEntry[];
  };
  const frame = new Uint8Array(keptLength + sizeOf(table));
  frame.set(new Uint8Array(bytes, keptAt, keptLength));
  const streams = readStreams(head, bytes, keptAt + keptLength);
  const columns: Record<string, Uint32Array> = {};
  for (const { name, type, offset, length } of table) {
    const column = makeColumn(type, frame.buffer, keptLength + offset, length);
    columns[name] = column as Uint32Array;
    const stream = streams[name];
    if (stream) column.set(stream);
  }
  fill(columns, streams, head.tailed);
  return frame.buffer;
}

function text(bytes: ArrayBuffer, at: number, length: number): string {
  return new TextDecoder().decode(new Uint8Array(bytes, at, length));
}

function sizeOf(table: readonly ColumnEntry[]): number {
  return Math.max(0, ...table.map((one) => one.offset + one.length * WIDTH[one.type]));
}

/** Put the bytes of each number together again. */
function readStreams(head: Head, bytes: ArrayBuffer, from: number): Record<string, Uint32Array> {
  const streams: Record<string, Uint32Array> = {};
  let at = from;
  for (const { name, width, length } of head.streams) {
    const whole = new Uint32Array(length);
    for (let plane = 0; plane < width; plane++, at += length) {
      const part = new Uint8Array(bytes, at, length);
      if (plane === 0) whole.set(part);
      else for (let i = 0; i < length; i++) whole[i]! |= part[i]! << (8 * plane);
    }
    streams[name] = whole;
  }
  return streams;
}

function unzigzag(value: number): number {
  return (value >>> 1) ^ -(value & 1);
}

/** Work out what the streams say only in relation to parents. */
function fill(
  columns: Record<string, Uint32Array>,
  { skip, gap }: Record<string, Uint32Array>,
  tailed: readonly number[],
): void {
  const { start, dur, session, lane, row, name } = columns as Required<typeof columns>;
  const isTailed = new Uint8Array(1 << 16);
  for (const one of tailed) isTailed[one] = 1;
  const endOf = (at: number): number =>
    dur![at] === OPEN_DURATION ? Infinity : start![at]! + dur![at]!;
  let [first, candidate, reached] = [0, 0, 0];
  for (let at = 0; at < gap!.length; at++) {
    const isSame = lane![at] === lane![at - 1];
    if (!isSame || row![at] !== row![at - 1]) {
      candidate = isSame && row![at] === row![at - 1]! + 1 ? first : at;
      first = at;
      reached = 0;
    }
    while (candidate < first && endOf(candidate) <= reached) candidate++;
    const parent = candidate < first ? candidate + skip![at]! : -1;
    start![at] = Math.max(reached, start![parent] ?? 0) + gap![at]!;
    const end = parent < 0 ? Infinity : endOf(parent);
    session![at] = (session![parent] ?? session![at - 1] ?? 0) + unzigzag(session![at]!);
    if (isTailed[name![at]!] && dur![at] !== OPEN_DURATION && end < Infinity) {
      dur![at] = end - unzigzag(dur![at]!) - start![at]!;
    }
    reached = endOf(at);
  }
}
