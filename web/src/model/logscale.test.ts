import assert from "node:assert/strict";
import { test } from "node:test";
import { lengthAt, logScale, placeOf, tickLabel, ticksOf } from "./logscale";

test("a place and its length lead to each other", () => {
  const scale = logScale([2e6, 5e9, 9e7]);
  assert.deepEqual([scale.low, scale.high], [2e6, 5e9]);
  for (const length of [2e6, 7.5e6, 1e9, 5e9]) {
    const back = lengthAt(scale, placeOf(scale, length));
    assert.ok(Math.abs(back / length - 1) < 1e-9);
  }
});

test("lengths outside stand at the ends", () => {
  const scale = logScale([1e6, 1e9]);
  assert.equal(placeOf(scale, 0), 0);
  assert.equal(placeOf(scale, 1e12), 1);
});

test("equal lengths, zeros and nothing still make a scale", () => {
  for (const lengths of [[5e9, 5e9], [0, 5e9], [0], []]) {
    const scale = logScale(lengths);
    assert.ok(scale.low > 0 && scale.high > scale.low);
    assert.ok(ticksOf(scale).length > 0);
  }
});

test("a short scale has closer ticks, and a tiny one too", () => {
  assert.deepEqual(ticksOf({ low: 340e6, high: 1.8e9 }), [500e6, 1e9]);
  assert.deepEqual(ticksOf({ low: 18e3, high: 420e3 }), [20e3, 50e3, 100e3, 200e3]);
  assert.deepEqual(ticksOf({ low: 1e6, high: 1e9 }), [1e6, 1e7, 1e8, 1e9]);
});

test("ticks leave out empty decimals, and only these", () => {
  assert.equal(tickLabel(2e9), "2 s");
  assert.equal(tickLabel(40e9), "40 s");
  assert.equal(tickLabel(2.5e9), "2.5 s");
  assert.equal(tickLabel(1.05e9), "1.05 s");
  assert.equal(tickLabel(100e6), "100 ms");
  assert.equal(tickLabel(100e9), "1 m 40 s");
  assert.equal(tickLabel(120e9), "2 m");
});
