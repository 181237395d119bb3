import assert from "node:assert/strict";
import { test } from "node:test";
import { toRanges } from "./ranges";

test("positions are asked for in whole chunks, neighbours together", () => {
  assert.equal(toRanges([1, 5, 40, 70, 200], 32, 8), "0-96,192-224");
  assert.equal(toRanges([], 32, 8), "");
});

test("too many ranges become one that holds all", () => {
  assert.equal(toRanges([0, 100, 200], 10, 2), "0-210");
  assert.equal(toRanges([0, 100, 200], 10, 3), "0-10,100-110,200-210");
});
