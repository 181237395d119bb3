import assert from "node:assert/strict";
import { test } from "node:test";
import { FLAG, type FrameHeader, MARKED_FLAGS, OPEN_DURATION } from "./frame";
import { FAINTEST, makeInks, STRENGTHS } from "./inks";
import { PixelLine } from "./lod";
import type { Picture } from "./marks";
import { PicturePainter, type Strip } from "./picture";
import { FIRST_OTHER_SLOT, SLOT_COUNT } from "./slots";
import { endOf, indexed, type SpanTable } from "./spans";

const THEME = {
  background: "#ffffff",
  slots: Array.from({ length: SLOT_COUNT }, (_, slot) => `#8080${(16 + slot * 16).toString(16)}`),
  text: "#000000",
  accent: "#ff0000",
  line: "#cccccc",
};
const INKS = makeInks(THEME);
const MARKS = new Set(INKS.marks);

/** A small repeatable source of chance. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function headerOf(lanes: number, rows: number): FrameHeader {
  return {
    kind: "raw",
    t0_ns: "1000",
    t1_ns: "0",
    now_ns: "0",
    tick_ns: 1000,
    seq: 1,
    by: "host",
    rows: 0,
    columns: [],
    names: ["generate", "reward", "judge"],
    name_roles: [0, 3, 7],
    roles: ["generate", "tool", "env", "reward", "train", "waiting", "sync", "other"],
    groups: [{ label: "host", first_lane: 0, lanes }],
    lanes: Array.from({ length: lanes }, (_, id) => ({
      id,
      label: "slot",
      group: 0,
      rows,
      flags: 0,
    })),
    total_spans: 0,
    total_lanes: lanes,
    first_lane: 0,
  };
}

interface Plan {
  readonly lanes: number;
  readonly rows: number;
  readonly spans: number;
  readonly flagged: number;
}

function randomTable(plan: Plan, random: () => number): SpanTable {
  const total = plan.lanes * plan.rows * plan.spans;
  const columns = {
    start: new Uint32Array(total),
    dur: new Uint32Array(total),
    session: new Uint32Array(total),
    lane: new Uint16Array(total),
    row: new Uint16Array(total),
    name: new Uint16Array(total),
    flags: new Uint8Array(total),
    slot: new Uint8Array(total),
    weight: null,
    tally: null,
    longest: null,
  };
  let at = 0;
  for (let lane = 0; lane < plan.lanes; lane++) {
    for (let row = 0; row < plan.rows; row++) {
      let tick = Math.floor(random() * 50);
      for (let span = 0; span < plan.spans; span++, at++) {
        const isOpen = span === plan.spans - 1 && random() < 0.3;
        columns.start[at] = tick;
        columns.dur[at] = isOpen ? OPEN_DURATION : Math.floor(random() ** 4 * 200);
        columns.lane[at] = lane;
        columns.row[at] = row;
        columns.slot[at] = Math.floor(random() * SLOT_COUNT);
        columns.flags[at] =
          (random() < plan.flagged ? 1 << Math.floor(random() * 5) : 0) | (isOpen ? FLAG.open : 0);
        tick += (isOpen ? 0 : columns.dur[at]!) + Math.floor(random() ** 2 * 60);
      }
    }
  }
  return indexed(columns, headerOf(plan.lanes, plan.rows), 1000n);
}

function stripsOf(plan: Plan, height: number): Strip[] {
  const strips: Strip[] = [];
  for (let lane = 0; lane < plan.lanes; lane++) {
    for (let row = 0; row < plan.rows; row++) {
      strips.push({ lane, row, y: strips.length * height, height });
    }
  }
  return strips;
}

function emptyPicture(width: number, height: number): Picture {
  return { pixels: new Uint32Array(width * height), width, height };
}

test("every flagged span in view has its mark, at any zoom", () => {
  const random = randomFrom(7);
  const plan = { lanes: 3, rows: 2, spans: 120, flagged: 0.05 };
  for (let round = 0; round < 60; round++) {
    const table = randomTable(plan, random);
    const width = 40 + Math.floor(random() * 300);
    const t0 = Math.floor(random() * 4000) * 1000;
    const view = { t0, t1: t0 + (10 + Math.floor(random() * 8000)) * 1000, width, now: 12e6 };
    const picture = emptyPicture(width, 6 * 4);
    const strips = stripsOf(plan, 4);
    new PicturePainter(width).paint(picture, [table], { strips, silhouettes: [] }, view, INKS);
    for (let index = 0; index < table.count; index++) {
      assertMarked(table, index, view, picture, strips);
    }
  }
});

function assertMarked(
  table: SpanTable,
  index: number,
  view: { t0: number; t1: number; width: number; now: number },
  picture: Picture,
  strips: Strip[],
): void {
  const start = table.start[index]! * 1000;
  const end = endOf(table, index, view.now / 1000) * 1000;
  const isInView = start < view.t1 && (end > view.t0 || start >= view.t0);
  if ((table.flags[index]! & MARKED_FLAGS) === 0 || !isInView) {
    return;
  }
  const scale = view.width / (view.t1 - view.t0);
  const x0 = Math.max(Math.floor((start - view.t0) * scale) - 2, 0);
  const x1 = Math.min(Math.ceil((end - view.t0) * scale) + 2, view.width);
  const strip = strips.find(
    (each) => each.lane === table.lane[index] && each.row === table.row[index],
  )!;
  const seen = new Set<number>();
  for (let y = strip.y; y < strip.y + strip.height; y++) {
    const line = picture.pixels.subarray(y * view.width, (y + 1) * view.width);
    line.forEach((pixel, x) => x >= x0 && x <= x1 && MARKS.has(pixel) && seen.add(x));
  }
  assert.ok(seen.size >= Math.min(3, view.width), `span ${index} has no mark of three pixels`);
}

test("colour and strength of every pixel agree with a count by brute force", () => {
  const random = randomFrom(11);
  for (let round = 0; round < 40; round++) {
    const table = randomTable({ lanes: 1, rows: 1, spans: 200, flagged: 0 }, random);
    const width = 20 + Math.floor(random() * 200);
    const t0 = Math.floor(random() * 3000) * 1000;
    const view = { t0, t1: t0 + (50 + Math.floor(random() * 6000)) * 1000, width, now: 9e6 };
    const line = new PixelLine(width);
    line.addRow([table], 0, 0, view);
    for (let x = 0; x < width; x++) {
      assertPixel(line, x, coverOf(table, view, x));
    }
  }
});

function coverOf(
  table: SpanTable,
  view: { t0: number; t1: number; width: number; now: number },
  x: number,
): Float64Array {
  const perPixel = (view.t1 - view.t0) / view.width;
  const from = view.t0 + x * perPixel;
  const cover = new Float64Array(SLOT_COUNT);
  for (let index = 0; index < table.count; index++) {
    const start = table.start[index]! * 1000;
    const end = endOf(table, index, view.now / 1000) * 1000;
    const shared = Math.min(end, from + perPixel) - Math.max(start, from);
    cover[table.slot[index]!]! += Math.max(shared, 0) / perPixel;
  }
  return cover;
}

function assertPixel(line: PixelLine, x: number, cover: Float64Array): void {
  const covered = cover.reduce((sum, each) => sum + each, 0);
  const drawn = line.strengths[x]!;
  if (covered < 1e-6) {
    assert.ok(drawn === 0 || drawn === FAINTEST, "nothing covers it but an instant");
    return;
  }
  assert.ok(Math.abs(drawn - Math.max(covered * 255, FAINTEST)) <= 2, `${drawn} for ${covered}`);
  const best = leadingSlot(cover);
  const isClose = Math.abs(cover[best]! - cover[line.slots[x]!]!) < 1e-6;
  assert.ok(line.slots[x] === best || isClose, `slot ${line.slots[x]} instead of ${best}`);
}

/** The role with most covered time; names without a role lead together, the largest colours. */
function leadingSlot(cover: Float64Array): number {
  const roles = cover.subarray(0, FIRST_OTHER_SLOT);
  const others = cover.subarray(FIRST_OTHER_SLOT);
  const together = others.reduce((sum, each) => sum + each, 0);
  return together > Math.max(...roles)
    ? FIRST_OTHER_SLOT + others.indexOf(Math.max(...others))
    : roles.indexOf(Math.max(...roles));
}

test("names without a role lead together, and the largest of them gives the colour", () => {
  const table = randomTable({ lanes: 1, rows: 1, spans: 3, flagged: 0 }, randomFrom(2));
  table.start.set([0, 40, 65]);
  table.dur.set([40, 25, 30]);
  table.slot.set([0, 7, 9]);
  const line = new PixelLine(1);
  line.addRow([table], 0, 0, { t0: 0, t1: 100_000, width: 1, now: 0 });
  assert.equal(line.slots[0], 9);
});

test("spans that came later are drawn among those of the first load", () => {
  const random = randomFrom(3);
  const whole = randomTable({ lanes: 1, rows: 1, spans: 60, flagged: 0.1 }, random);
  const [even, odd] = [0, 1].map((rest) => everySecond(whole, rest)) as [SpanTable, SpanTable];
  const view = { t0: 0, t1: 4e6, width: 173, now: 5e6 };
  const one = new PixelLine(173);
  const two = new PixelLine(173);
  one.addRow([whole], 0, 0, view);
  two.addRow([even, odd], 0, 0, view);
  assert.deepEqual(two.slots, one.slots);
  assert.deepEqual(two.strengths, one.strengths);
  assert.deepEqual(two.flags, one.flags);
});

function everySecond(table: SpanTable, rest: number): SpanTable {
  const keep = (_: number, index: number): boolean => index % 2 === rest;
  return indexed(
    {
      start: table.start.filter(keep),
      dur: table.dur.filter(keep),
      session: table.session.filter(keep),
      lane: table.lane.filter(keep),
      row: table.row.filter(keep),
      name: table.name.filter(keep),
      flags: table.flags.filter(keep),
      slot: table.slot.filter(keep),
      weight: null,
      tally: null,
      longest: null,
    },
    headerOf(1, 1),
    1000n,
  );
}

test("a collapsed group shows how many of its lanes are busy, and carries their flags", () => {
  const plan = { lanes: 4, rows: 1, spans: 1, flagged: 0 };
  const table = randomTable(plan, randomFrom(5));
  table.start.set([0, 0, 0, 0]);
  table.dur.set([50, 50, 100, 100]);
  table.flags.set([FLAG.error, 0, 0, 0]);
  table.slot.fill(2);
  const picture = emptyPicture(100, 40);
  const box = { group: 0, lanes: [0, 1, 2, 3], rowsOf: () => 1, y: 0, height: 40 };
  const view = { t0: 0, t1: 100_000, width: 100, now: 100_000 };
  const layout = { strips: [], silhouettes: [box] };
  new PicturePainter(100).paint(picture, [table], layout, view, INKS);
  const full = INKS.slots[2 * STRENGTHS + 255]!;
  const heightAt = (x: number): number =>
    Array.from({ length: 40 }, (_, y) => picture.pixels[y * 100 + x]).filter((p) => p === full)
      .length;
  assert.equal(heightAt(30), 40);
  assert.equal(heightAt(80), 20);
  assert.equal(picture.pixels[0], INKS.marks[0]);
});
