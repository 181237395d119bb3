import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { applyDelta, idOf, liveTables, tablesOf } from "./deltas";
import { type Column, column, decodeFrame, type Frame, OPEN_DURATION } from "./frame";
import { type SpanTable, tableOf } from "./spans";

const GOLDEN = "../tests/golden/view-frames/";

interface Golden {
  readonly header: Record<string, unknown>;
  readonly columns: Record<string, number[]>;
}

async function bytesOf(name: string): Promise<ArrayBuffer> {
  const file = await readFile(`${GOLDEN}${name}.rsv`);
  return file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength) as ArrayBuffer;
}

async function goldenOf(kind: string): Promise<Golden> {
  const all = JSON.parse(await readFile(`${GOLDEN}decoded.json`, "utf8")) as Record<string, Golden>;
  return all[kind]!;
}

for (const kind of ["raw", "packed", "tile", "delta"]) {
  test(`a ${kind} frame decodes to what its encoder meant`, async () => {
    const frame = await decodeFrame(await bytesOf(kind));
    const golden = await goldenOf(kind);
    assert.equal(frame.header.kind, kind);
    assert.deepEqual(frame.header.names, golden.header["names"]);
    assert.deepEqual([...frame.columns.keys()], Object.keys(golden.columns));
    for (const [name, values] of Object.entries(golden.columns)) {
      assert.deepEqual(Array.from(column(frame, name) as Iterable<number>), values, name);
    }
  });
}

test("raw columns are views of the bytes, not copies", async () => {
  const bytes = await bytesOf("raw");
  const frame = await decodeFrame(bytes);
  assert.equal(column(frame, "start").buffer, bytes);
});

test("bytes that are no frame, or end too early, are refused with a sentence", async () => {
  const whole = await bytesOf("raw");
  await assert.rejects(decodeFrame(new ArrayBuffer(3)), /no view frame/);
  await assert.rejects(
    decodeFrame(new TextEncoder().encode("hello there").buffer),
    /no view frame/,
  );
  await assert.rejects(decodeFrame(whole.slice(0, 40)), /inside its header/);
  await assert.rejects(decodeFrame(whole.slice(0, whole.byteLength - 200)), /inside its column/);
  const packed = await bytesOf("packed");
  await assert.rejects(decodeFrame(packed.slice(0, packed.byteLength - 30)));
});

test("the cells of a tile become rows of the window's pixels, in order with its spans", async () => {
  const frame = await decodeFrame(await bytesOf("tile"));
  const base = BigInt(frame.header.t0_ns);
  const table = tableOf(frame, base);
  const cells = column(frame, "cell_x").length;
  assert.equal(table.count, frame.header.rows + cells);
  const pixel = Number(BigInt(frame.header.t1_ns) - base) / Number(frame.header["width"]);
  const merged = Array.from({ length: table.count }, (_, index) => index).filter(
    (index) => table.weight![index]! < 255,
  );
  assert.equal(merged.length, cells);
  const first = merged[0]!;
  const x = column(frame, "cell_x")[0]!;
  assert.ok(Math.abs(table.start[first]! * table.tickNs - x * pixel) <= table.tickNs);
  assertSorted(table);
});

function assertSorted(table: SpanTable): void {
  for (let index = 1; index < table.count; index++) {
    const [a, b] = [index - 1, index].map((at) => [
      table.lane[at]!,
      table.row[at]!,
      table.start[at]!,
    ]);
    const isAfter = a![0]! - b![0]! || a![1]! - b![1]! || a![2]! - b![2]!;
    assert.ok(isAfter <= 0, `span ${index} is out of order`);
  }
}

test("the run of yesterday and a delta make the run of today", async () => {
  const today = await decodeFrame(await bytesOf("raw"));
  const delta = await decodeFrame(await bytesOf("delta"));
  const base = BigInt(today.header.t0_ns);
  const yesterday = withoutDelta(today, delta);
  const live = applyDelta(liveTables(yesterday, base), delta, base);
  const told = tablesOf(live).flatMap((table) => wordsOf(table, live.sessionIds));
  const ids = column(today, "session_ids") as Uint32Array;
  assert.deepEqual(told.sort(), wordsOf(tableOf(today, base), ids).sort());
});

test("an end that a delta tells finds its open span", async () => {
  const delta = await decodeFrame(await bytesOf("delta"));
  const today = await decodeFrame(await bytesOf("raw"));
  const base = BigInt(today.header.t0_ns);
  const yesterday = withoutDelta(today, delta);
  const columns = new Map(yesterday.columns)
    .set("dur", column(yesterday, "dur").slice().fill(OPEN_DURATION, 3, 4))
    .set("open_index", Uint32Array.of(3))
    .set("open_handle", Uint32Array.of(column(delta, "ended_handle")[0]!));
  const before = liveTables({ header: yesterday.header, columns }, base);
  assert.equal(before.main.dur[3], OPEN_DURATION);
  const live = applyDelta(before, delta, base);
  assert.equal(live.main.dur[3], column(delta, "ended_dur")[0]);
});

test("a delta in finer ticks is counted in those of the run", async () => {
  const delta = await decodeFrame(await bytesOf("delta"));
  const today = await decodeFrame(await bytesOf("raw"));
  const coarse = { ...today.header, tick_ns: 10_000 };
  const start = column(today, "start").map((tick) => Math.floor(tick / 10));
  const columns = new Map<string, Column>(today.columns).set("start", start);
  const base = BigInt(today.header.t0_ns);
  const before = liveTables(withoutDelta({ header: coarse, columns }, delta), base);
  const live = applyDelta(before, delta, base);
  assert.equal(live.header.tick_ns, 10_000);
  assert.equal(live.newer!.tickNs, 10_000);
  assert.equal(live.newer!.start[0], Math.floor(column(delta, "start")[0]! / 10));
});

/** Take the rows of a delta out of a frame. */
function withoutDelta(frame: Frame, delta: Frame): Frame {
  const places = (of: Frame, factor = 1): string[] =>
    Array.from({ length: column(of, "start").length }, (_, at) =>
      [
        column(of, "lane")[at],
        column(of, "row")[at],
        Math.floor(column(of, "start")[at]! * factor),
      ].join(" "),
    );
  const added = new Set(places(delta, delta.header.tick_ns / frame.header.tick_ns));
  const isOld = places(frame).map((place) => !added.has(place));
  const columns = new Map<string, Column>();
  for (const name of ["start", "dur", "session", "lane", "row", "name", "flags"]) {
    columns.set(name, column(frame, name).filter((_, index) => isOld[index]!) as Column);
  }
  columns.set("session_ids", column(frame, "session_ids"));
  return { header: frame.header, columns };
}

function wordsOf(table: SpanTable, ids: Uint32Array): string[] {
  return Array.from({ length: table.count }, (_, at) => {
    const session = table.session[at]!;
    const id = session * 2 < ids.length ? idOf(ids, session) : "none";
    const dur = table.dur[at] === OPEN_DURATION ? "open" : table.dur[at];
    return [table.lane[at], table.row[at], table.start[at], dur, table.name[at], id].join(" ");
  });
}
