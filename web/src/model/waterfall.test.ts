import assert from "node:assert/strict";
import { test } from "node:test";
import type { Segment } from "./answers";
import { toWaterfall } from "./waterfall";

function path(...lengths: number[]): Segment[] {
  let at = 100;
  return lengths.map((length) => {
    const [start_ns, end_ns] = [at, (at += length)];
    const unknown = { detail: null, within: null, session_id: null, span_id: null };
    return { start_ns, end_ns, name: "x", inferred: false, ...unknown };
  });
}

function lengthOf(one: Segment): number {
  return one.end_ns - one.start_ns;
}

test("rows are the longest segments in order of time, and the rest is summed up", () => {
  const found = toWaterfall(path(500, 3, 200, 0, 297), 2, 0.001);
  assert.deepEqual(found.rows.map(lengthOf), [500, 297]);
  assert.deepEqual([found.restCount, found.restNs], [3, 203]);
});

test("what is too short for a row is left to the rest, however few rows there are", () => {
  const found = toWaterfall(path(1, 999), 10, 0.01);
  assert.deepEqual(found.rows.map(lengthOf), [999]);
  assert.deepEqual([found.restCount, found.restNs], [1, 1]);
});

test("rows and rest make up the path", () => {
  const segments = path(5, 70, 1, 1, 40, 8, 300, 2);
  for (let most = 0; most <= segments.length; most++) {
    const { rows, restNs } = toWaterfall(segments, most, 0.01);
    assert.equal(
      rows.reduce((sum, one) => sum + lengthOf(one), restNs),
      427,
    );
  }
});

test("a path without length has no rows", () => {
  assert.deepEqual(toWaterfall([], 5, 0.01), { rows: [], restCount: 0, restNs: 0 });
});
