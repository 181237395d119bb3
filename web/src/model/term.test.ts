import assert from "node:assert/strict";
import { test } from "node:test";
import { lengthTerm, term } from "./term";

test("plain values stand as they are, several with commas", () => {
  assert.equal(term("phase", "toolcall"), "phase:toolcall");
  assert.equal(term("step", 41), "step:41");
  assert.equal(term("id", "00ff", "01aa"), "id:00ff,01aa");
});

test("what the language would read otherwise is quoted", () => {
  assert.equal(term("task", "swe/3 a"), 'task:"swe/3 a"');
  assert.equal(term("pool", "none"), 'pool:"none"');
  assert.equal(term("reason", 'say "x\\y": no'), 'reason:"say \\"x\\\\y\\": no"');
  assert.equal(term("host", ""), 'host:""');
});

test("lengths are written in seconds to the nanosecond", () => {
  assert.equal(lengthTerm("ran", ">=", 1_500_000_000), "ran>=1.5s");
  assert.equal(lengthTerm("ran", "<", 60e9), "ran<60s");
  assert.equal(lengthTerm("ran", ">", 1), "ran>0.000000001s");
  assert.equal(lengthTerm("ran", ">", -5), "ran>0s");
});
