import assert from "node:assert/strict";
import { test } from "node:test";
import { indexAt, layout, stretches, ticks } from "./plot";

test("ticks are round, within the range, and few", () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(-0.3, 0.3, 3), [-0.2, 0, 0.2]);
  assert.deepEqual(ticks(7, 7, 4), [7]);
  for (let high = 1e-6; high < 1e9; high *= 3.7) {
    const found = ticks(0, high, 6);
    assert.ok(found.length <= 8 && found.length >= 2, `${high}: ${found.length}`);
  }
});

test("the position next to the pointer is found, also outside", () => {
  const xs = [0, 10, 30];
  assert.deepEqual(
    [-5, 4, 6, 19, 21, 99].map((x) => indexAt(xs, x)),
    [0, 0, 1, 1, 2, 2],
  );
  assert.equal(indexAt([], 1), null);
});

test("what is drawn at a place is what the place is read back as", () => {
  const series = [{ label: "a", colour: "--x", values: [1, 5, 2] }];
  for (const kind of ["line", "bars", "stack", "points"] as const) {
    const place = layout({ label: "", xs: [3, 4, 5], series, kind }, 600, 160);
    assert.ok(Math.abs(place.valueAtX(place.x(4.2)) - 4.2) < 1e-9);
    assert.ok(Math.abs(place.valueAtY(place.y(3)) - 3) < 1e-9);
    assert.ok(place.x(3) >= place.left && place.x(5) <= place.right);
    // Half a bar or point would be cut off at the edge.
    if (kind === "bars" || kind === "points") assert.ok(place.x(3) >= place.left + 3);
  }
});

test("gaps split a line", () => {
  assert.deepEqual(stretches([null, 1, 2, null, 3]), [[1, 2], [4]]);
});

test("a line that is joined goes over gaps as usual, and not over a pause", () => {
  const values = Array.from({ length: 40 }, (_, i) =>
    i % 3 === 0 && (i < 10 || i > 30) ? i : null,
  );
  assert.deepEqual(stretches(values, true), [
    [0, 3, 6, 9],
    [33, 36, 39],
  ]);
  assert.deepEqual(stretches([null, 5, null], true), [[1]]);
});
