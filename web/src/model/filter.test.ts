import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parseFilter } from "./filter";

interface Case {
  filter: string;
  tree?: unknown;
  error?: { message: string; position: number } | string;
  position?: number;
}

const cases = JSON.parse(readFileSync("../tests/golden/filters.json", "utf8")) as Case[];

test("every filter reads as the golden file says, and fails where it says", () => {
  assert.ok(cases.length > 50);
  for (const one of cases) {
    const parsed = parseFilter(one.filter);
    if (one.tree !== undefined) {
      assert.deepEqual("filter" in parsed && parsed.filter, one.tree, one.filter);
    } else {
      assert.ok("error" in parsed, one.filter);
      assert.equal(parsed.error.message, one.error, one.filter);
      assert.equal(parsed.error.at, one.position, one.filter);
    }
  }
});

test("a position is counted in characters, as Python counts them", () => {
  const parsed = parseFilter("😀 😀 nope:1");
  assert.equal("error" in parsed && parsed.error.at, 4);
});
