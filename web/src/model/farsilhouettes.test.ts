import assert from "node:assert/strict";
import { test } from "node:test";
import { farFlight, farLevel, type FarSilhouettes } from "./farsilhouettes";
import { FLAG } from "./frame";

const FAR: FarSilhouettes = {
  t0: 1000,
  t1: 2000,
  width: 4,
  mean: Uint32Array.of(0, 0, 0, 0, 1000, 2000, 500, 0),
  flags: Uint8Array.of(0, 0, 0, 0, FLAG.error, 0, FLAG.lost, 0),
  slot: Uint8Array.of(0, 0, 0, 0, 1, 2, 3, 4),
  flight: Uint32Array.of(1000, 2500, 500, 0),
  lanes: [3, 4],
};

function levelAt(group: number, from: number, to: number): [number, number, number] {
  const level = { share: -1, slot: -1, flags: -1 };
  farLevel(FAR, group, from, to, level);
  return [level.share, level.slot, level.flags];
}

test("a moment shows the level of its own pixel and group", () => {
  assert.deepEqual(levelAt(1, 1010, 1020), [0.25, 1, FLAG.error]);
  assert.deepEqual(levelAt(1, 1260, 1490), [0.5, 2, 0]);
  assert.deepEqual(levelAt(0, 1260, 1490), [0, 0, 0]);
});

test("a stretch of many pixels shows the highest, and the flags of all", () => {
  assert.deepEqual(levelAt(1, 1000, 2000), [0.5, 2, FLAG.error | FLAG.lost]);
});

test("outside of the tile there is nothing, not the edge of the next group", () => {
  assert.deepEqual(levelAt(0, 2500, 2600), [0, 0, 0]);
  assert.deepEqual(levelAt(1, 100, 200), [0, 0, 0]);
});

test("sessions in flight follow the window, and there are none outside of the tile", () => {
  assert.deepEqual([...farFlight(FAR, { t0: 1000, t1: 2000 }, 4)], [1, 2.5, 0.5, 0]);
  assert.deepEqual([...farFlight(FAR, { t0: 1250, t1: 1500 }, 2)], [2.5, 2.5]);
  assert.deepEqual([...farFlight(FAR, { t0: 0, t1: 500 }, 2)], [0, 0]);
});
