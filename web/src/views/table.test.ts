import assert from "node:assert/strict";
import { test } from "node:test";
import { layerAt, stacked, type Series } from "./stack";
import { type Column, sortRows, toCsv } from "./rows";

interface Row {
  name: string;
  size: number | null;
}

const COLUMNS: Column<Row>[] = [
  { id: "name", title: "Name", value: (row) => row.name },
  { id: "size", title: "Size, s", value: (row) => row.size },
];
const ROWS: Row[] = [
  { name: "b", size: 2 },
  { name: "a", size: null },
  { name: "c", size: 10 },
];

test("rows without a value come last in either order", () => {
  assert.deepEqual(
    sortRows(ROWS, COLUMNS, "-size").map((row) => row.name),
    ["c", "b", "a"],
  );
  assert.deepEqual(
    sortRows(ROWS, COLUMNS, "size").map((row) => row.name),
    ["b", "c", "a"],
  );
  assert.equal(sortRows(ROWS, COLUMNS, ""), ROWS);
});

test("a saved table holds no formula and keeps its commas", () => {
  const rows = [
    { name: '=HYPERLINK("x")', size: -1 },
    { name: 'says "a, b"', size: null },
  ];
  assert.equal(toCsv(COLUMNS, rows), `Name,"Size, s"\n"'=HYPERLINK(""x"")",-1\n"says ""a, b""",\n`);
});

test("a stack adds up from the bottom and its limit stays a line", () => {
  const series: Series[] = [
    { label: "generate", colour: "--x", values: [1, 2] },
    { label: "tool", colour: "--y", values: [3, null] },
    { label: "capacity", colour: "--z", values: [9, 9], isLimit: true },
  ];
  assert.deepEqual(stacked(series), [
    [1, 2],
    [4, 2],
    [9, 9],
  ]);
  assert.equal(layerAt(series, 0, 0.5), 0);
  assert.equal(layerAt(series, 0, 3.9), 1);
});
