import assert from "node:assert/strict";
import { test } from "node:test";
import { sumArea } from "./area";
import { FLAG, OPEN_DURATION } from "./frame";
import { momentAt, neighbourOf, rowAt, spanAt } from "./hit";
import { inFlight } from "./inflight";
import { boxesBetween, HEAD_PX, laneOrder, layoutLanes, pictureLayout } from "./lanes";
import { indexed, type SpanTable } from "./spans";

const HEADER = {
  groups: [
    { label: "host-0", first_lane: 0, lanes: 2 },
    { label: "host-1", first_lane: 2, lanes: 1 },
  ],
  lanes: [
    { id: 10, label: "slot b", group: 0, rows: 2, flags: 0 },
    { id: 11, label: "trainer", group: 1, rows: 1, flags: 0 },
    { id: 12, label: "slot a", group: 0, rows: 1, flags: 0 },
  ],
};
const PLAIN = { collapsed: new Set<number>(), pinned: [], rowHeight: 10, order: null };

/** Lane, row, start, duration, name, flags; one session a lane. */
const SPANS = [
  [0, 0, 0, 100, 0, FLAG.session],
  [0, 1, 10, 30, 1, 0],
  [0, 1, 50, 40, 1, FLAG.error],
  [1, 0, 0, 500, 2, 0],
  [2, 0, 40, OPEN_DURATION, 0, FLAG.session | FLAG.open],
] as const;

function table(): SpanTable {
  const column = (at: number): number[] => SPANS.map((span) => span[at]!);
  return indexed(
    {
      start: Uint32Array.from(column(2)),
      dur: Uint32Array.from(column(3)),
      session: Uint32Array.from(column(0)),
      lane: Uint16Array.from(column(0)),
      row: Uint16Array.from(column(1)),
      name: Uint16Array.from(column(4)),
      flags: Uint8Array.from(column(5)),
      slot: new Uint8Array(SPANS.length),
      weight: null,
      tally: null,
      longest: null,
    },
    { ...HEADER, tick_ns: 1000, t0_ns: "0" } as never,
    0n,
  );
}

test("lanes stand under the head of their group, rows of a lane under each other", () => {
  const layout = layoutLanes(HEADER, PLAIN);
  assert.deepEqual(
    layout.lanes.map((box) => box.lane),
    [0, 2, 1],
  );
  assert.equal(layout.lanes[0]!.y, HEAD_PX);
  assert.equal(layout.lanes[0]!.height, 20);
  const { strips } = pictureLayout(layout, HEADER, 0, 500, 2);
  assert.deepEqual(
    strips.map((strip) => [strip.lane, strip.row]),
    [
      [0, 0],
      [0, 1],
      [2, 0],
      [1, 0],
    ],
  );
  assert.equal(strips[1]!.y - strips[0]!.y, 20);
});

test("a collapsed group gives its lanes to a silhouette", () => {
  const layout = layoutLanes(HEADER, { ...PLAIN, collapsed: new Set([0]) });
  const { strips, silhouettes } = pictureLayout(layout, HEADER, 0, 500, 1);
  assert.deepEqual(silhouettes[0]!.lanes, [0, 2]);
  assert.deepEqual(
    strips.map((strip) => strip.lane),
    [1],
  );
});

test("a pinned lane stays on top however far the others are scrolled", () => {
  const layout = layoutLanes(HEADER, { ...PLAIN, pinned: [11] });
  const { strips } = pictureLayout(layout, HEADER, 40, 300, 1);
  assert.equal(strips.find((strip) => strip.lane === 1)!.y, 0);
  assert.deepEqual(rowAt(layout, 4, 40), { lane: 1, row: 0 });
});

test("lanes sort by name, start, end and age within their group", () => {
  const names = laneOrder(HEADER, table(), "name")!;
  assert.deepEqual(
    layoutLanes(HEADER, { ...PLAIN, order: names }).lanes.map((box) => box.lane),
    [2, 0, 1],
  );
  assert.deepEqual(laneOrder(HEADER, table(), "start"), [0, 1, 2]);
  assert.deepEqual(laneOrder(HEADER, table(), "end"), [0, 1, 2]);
  assert.equal(laneOrder(HEADER, table(), "age")![0], 2);
});

test("boxes are found by the heights they lie between", () => {
  const boxes = Array.from({ length: 100 }, (_, at) => ({ y: at * 10, height: 8 }));
  assert.deepEqual(
    boxesBetween(boxes, 25, 45).map((box) => box.y),
    [20, 30, 40],
  );
});

test("the span under a point is found, and a near one within the grace", () => {
  const tables = [table()];
  const at = (time: number, grace = 0): number | undefined =>
    spanAt(tables, { lane: 0, row: 1 }, time, grace, 200e3)?.index;
  assert.equal(at(20e3), 1);
  assert.equal(at(45e3), undefined);
  assert.equal(at(42e3, 3e3), 1);
  assert.equal(at(48e3, 3e3), 2);
  assert.equal(spanAt(tables, { lane: 2, row: 0 }, 190e3, 0, 200e3)?.index, 4);
});

test("neighbours are those of the same row", () => {
  const tables = [table()];
  const from = { table: tables[0]!, index: 1 };
  assert.equal(neighbourOf(tables, from, 1)?.index, 2);
  assert.equal(neighbourOf(tables, from, -1), null);
  assert.equal(neighbourOf(tables, { ...from, index: 2 }, -1)?.index, 1);
});

test("a moment counts sessions not started, running and ended, and running phases", () => {
  const told = (time: number): number[] => {
    const moment = momentAt([table()], time, 200e3);
    return [moment.notStarted, moment.running, moment.ended];
  };
  assert.deepEqual(told(20e3), [1, 1, 0]);
  assert.deepEqual(told(60e3), [0, 2, 0]);
  assert.deepEqual(told(150e3), [0, 1, 1]);
  assert.equal(momentAt([table()], 60e3, 200e3).byName.get(1), 1);
});

test("sessions in flight are counted by the pixel, with fractions", () => {
  const counts = inFlight([table()], { t0: 0, t1: 200e3 }, 4, 200e3);
  assert.deepEqual(
    Array.from(counts, (each) => Math.round(each * 100) / 100),
    [1.2, 2, 1, 1],
  );
});

test("an area adds up whole spans by name, with the time that is their own", () => {
  const box = { t0: 20e3, t1: 60e3, lanes: [0] };
  const rows = sumArea([table()], ["session", "generate", "train"], box, 200e3);
  assert.deepEqual(
    rows.map(({ label, count, total_ns, self_ns }) => [label, count, total_ns, self_ns]),
    [
      ["session", 1, 100e3, 30e3],
      ["generate", 2, 70e3, 70e3],
    ],
  );
  assert.equal(rows[1]!.p50_ns, 30e3);
  assert.equal(rows[1]!.errors, 1);
});
