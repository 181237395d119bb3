import assert from "node:assert/strict";
import { test } from "node:test";
import type { Series, SeriesLine } from "./answers";
import { metricLines } from "./metriclines";

function line(values: (number | null)[], given: Partial<SeriesLine> = {}): SeriesLine {
  const nothing = values.map(() => null);
  return {
    labels: { tool: "python" },
    type: "gauge",
    values,
    lows: nothing,
    highs: nothing,
    p50: [],
    p95: [],
    ...given,
  };
}

function overTime(...lines: SeriesLine[]): Series {
  const positions = lines[0]!.values.map((_, i) => 100e9 + i * 2e9);
  return { name: "m", type: "", axis: "time", positions, width_ns: 2e9, lines, left_out: 0 };
}

test("a counter over time is a rate, over stretches of at least five seconds", () => {
  const series = overTime(line([6, null, 6, 3, 3], { type: "counter" }));
  const { xs, lines, says } = metricLines(series, 100e9);
  assert.deepEqual(xs, [3, 9]);
  assert.deepEqual(lines[0]!.values, [2, 1]);
  assert.deepEqual([lines[0]!.label, says], ["tool=python", ["A counter: how much a second."]]);
});

test("a counter by step is what was counted in each", () => {
  const counter = line([6, 9], { type: "counter" });
  const series = { ...overTime(counter), axis: "step", positions: [7, 8], width_ns: null };
  const { xs, lines } = metricLines(series, 0);
  assert.deepEqual(
    [xs, lines[0]!.values],
    [
      [7, 8],
      [6, 9],
    ],
  );
});

test("a gauge keeps its gaps, stands amid its stretch, and what is too early is left out", () => {
  const { xs, lines } = metricLines(overTime(line([1, null, 3])), 100e9, 102e9);
  assert.deepEqual(
    [xs, lines[0]!.values],
    [
      [3, 5],
      [null, 3],
    ],
  );
});

test("a histogram is its median, with a range up to the 95th percentile", () => {
  const histogram = line([5, 6], { type: "histogram", p50: [4, 4.5], p95: [9, 9.5] });
  const { lines, says } = metricLines(overTime(histogram), 100e9);
  assert.deepEqual(lines[0]!.values, [4, 4.5]);
  assert.deepEqual(
    [lines[0]!.lows, lines[0]!.highs],
    [
      [4, 4.5],
      [9, 9.5],
    ],
  );
  assert.match(says[0]!, /median/);
});

test("lines of two kinds under one name are told apart", () => {
  const { lines } = metricLines(overTime(line([1]), line([4], { type: "counter" })), 100e9);
  assert.deepEqual(
    lines.map((one) => [one.label, one.values]),
    [
      ["tool=python (gauge)", [1]],
      ["tool=python (counter)", [2]],
    ],
  );
});
