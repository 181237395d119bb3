import assert from "node:assert/strict";
import { test } from "node:test";
import { keepOrder } from "./steady";

interface Row {
  id: string;
  age: number;
}

function rows(...ids: string[]): Row[] {
  return ids.map((id, age) => ({ id, age }));
}

test("rows keep their places and take their new values", () => {
  const kept = keepOrder(rows("a", "b", "c"), rows("c", "a", "b"), (row) => row.id);
  assert.deepEqual(kept, [
    { id: "a", age: 1 },
    { id: "b", age: 2 },
    { id: "c", age: 0 },
  ]);
});

test("what is gone goes, and what is new comes last", () => {
  const kept = keepOrder(rows("a", "b"), rows("new", "b"), (row) => row.id);
  assert.deepEqual(
    kept.map((row) => row.id),
    ["b", "new"],
  );
});
