import assert from "node:assert/strict";
import { test } from "node:test";
import { completions, hasTerm, toggleTerm, withLengths } from "./narrow";

test("a condition is added once and taken away again", () => {
  const narrower = toggleTerm("host:gpu-1", "outcome:failed");
  assert.equal(narrower, "host:gpu-1 outcome:failed");
  assert.equal(toggleTerm(narrower, "outcome:failed"), "host:gpu-1");
  assert.equal(toggleTerm(narrower, "host:gpu-1"), "outcome:failed");
});

test("a condition that another begins with is not that other", () => {
  assert.equal(hasTerm("step:41", "step:4"), false);
  assert.equal(toggleTerm("step:41", "step:4"), "step:41 step:4");
});

test("bounds on lengths replace each other and leave the rest", () => {
  const once = withLengths("ran>1s host:a ran<=9s", 2e9, 3.5e9);
  assert.equal(once, "host:a ran>=2s ran<3.5s");
  assert.equal(withLengths(once, 1e9, 2e9), "host:a ran>=1s ran<2s");
});

test("the last word is completed, behind a minus as well", () => {
  const terms = ["outcome:", "outcome:failed", "host:gpu-1"];
  assert.deepEqual(completions("step:4 -out", terms), [
    "step:4 -outcome:",
    "step:4 -outcome:failed",
  ]);
  assert.deepEqual(completions("outcome:failed", terms), []);
  assert.deepEqual(completions("", terms), terms);
});
