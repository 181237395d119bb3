import assert from "node:assert/strict";
import { test } from "node:test";
import { formatRegion, parseRegion } from "./region";

test("a box comes back from the address as it was", () => {
  const region = {
    from: 1_790_000_000_000_000_000,
    to: 1_790_000_060_000_000_000,
    low: 5e8,
    high: 3e9,
  };
  assert.deepEqual(parseRegion(formatRegion(region)), region);
});

test("anything else is no box", () => {
  for (const text of ["", "1-2-3", "1-2-3-x", "1-2-3-4-5", "1--3-4"]) {
    assert.equal(parseRegion(text), null, text);
  }
});
