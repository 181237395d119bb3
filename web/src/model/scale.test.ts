import assert from "node:assert/strict";
import { test } from "node:test";
import {
  axisTimes,
  fitAround,
  keepNear,
  panBy,
  pixelOf,
  snapWindow,
  timeAt,
  zoomAt,
} from "./scale";

const WHOLE = { t0: 0, t1: 100e9 };

test("zooming keeps the time under the pointer where it is", () => {
  const before = { t0: 10e9, t1: 30e9 };
  const after = zoomAt(before, 14e9, 2, WHOLE);
  assert.equal(after.t1 - after.t0, 10e9);
  assert.ok(Math.abs(pixelOf(after, 1000, 14e9) - pixelOf(before, 1000, 14e9)) < 1e-6);
});

test("zooming out ends a little beyond the whole run", () => {
  const after = zoomAt({ t0: 0, t1: 90e9 }, 45e9, 0.1, WHOLE);
  assert.ok(after.t1 - after.t0 <= 111e9);
});

test("some of the run is always in view", () => {
  for (const share of [-50, -1, 1, 50]) {
    const { t0, t1 } = panBy({ t0: 10e9, t1: 20e9 }, share, WHOLE);
    assert.ok(t0 < WHOLE.t1 && t1 > WHOLE.t0, `${t0} to ${t1}`);
  }
  assert.equal(keepNear({ t0: 5e9, t1: 6e9 }, WHOLE).t0, 5e9);
});

test("a time and its pixel are each other's inverse", () => {
  const window = { t0: 3e9, t1: 7e9 };
  assert.ok(Math.abs(timeAt(window, 800, pixelOf(window, 800, 4.2e9)) - 4.2e9) < 1e-3);
});

test("fitting shows the whole interval", () => {
  const { t0, t1 } = fitAround(40e9, 50e9, WHOLE);
  assert.ok(t0 < 40e9 && t1 > 50e9 && t1 - t0 < 12e9);
});

test("near windows ask for the same tile, which holds them", () => {
  const tiles = new Set<string>();
  for (let shift = 0; shift < 40; shift++) {
    const window = { t0: 30e9 + shift * 1e7, t1: 35e9 + shift * 1e7 };
    const tile = snapWindow(window, WHOLE);
    assert.ok(tile.t0 <= window.t0 && tile.t1 >= window.t1);
    assert.ok(tile.t1 - tile.t0 <= 2 * (window.t1 - window.t0) + 2);
    tiles.add(`${tile.t0} ${tile.t1}`);
  }
  assert.ok(tiles.size <= 2, `${tiles.size} tiles for a small pan`);
});

test("the axis has round marks, about as many as wanted", () => {
  for (const length of [1e3, 3.3e6, 0.7e9, 42e9, 600e9, 86400e9]) {
    const times = axisTimes({ t0: length * 0.3, t1: length * 1.3 }, 10);
    assert.ok(times.length >= 2 && times.length <= 12, `${times.length} marks over ${length}`);
  }
  assert.deepEqual(axisTimes({ t0: 0, t1: 20e9 }, 4), [0, 5e9, 10e9, 15e9, 20e9]);
});
