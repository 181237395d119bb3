import assert from "node:assert/strict";
import { test } from "node:test";
import * as format from "./format";

const S = 1e9;

test("durations keep three digits and change their unit on the way", () => {
  const cases: [number | null, string][] = [
    [null, "–"],
    [0, "0 s"],
    [640, "640 ns"],
    [1_500, "1.5 µs"],
    [820e6, "820 ms"],
    [999.6e6, "1.00 s"],
    [1.24 * S, "1.24 s"],
    [12.34 * S, "12.3 s"],
    [99.96 * S, "1 m 40 s"],
    [192 * S, "3 m 12 s"],
    [3599.6 * S, "1.0 h"],
    [7560 * S, "2.1 h"],
    [3 * 86400 * S, "3.0 d"],
    [-5 * S, "−5.00 s"],
  ];
  for (const [ns, text] of cases) assert.equal(format.duration(ns), text);
});

test("beside a sentence a duration is written as in it", () => {
  const written = [0, 754e6, 1.01 * S, 6.65 * S, 9.96 * S, 312 * S, 840 * S, 7560 * S];
  assert.deepEqual(written.map(format.spoken), [
    ...["0 s", "754 ms", "1 s", "6.7 s", "10 s", "312 s", "14 min", "2.1 h"],
  ]);
});

test("a duration never shows sixty seconds", () => {
  for (let s = 100; s < 3700; s += 0.3) {
    assert.doesNotMatch(format.duration(s * S), /\b60 s/);
  }
});

test("counts, shares and sizes read shortly", () => {
  assert.equal(format.count(1204), "1,204");
  assert.equal(format.count(12_400_000), "12.4 M");
  assert.equal(format.percent(0), "0 %");
  assert.equal(format.percent(0.0004), "< 0.1 %");
  assert.equal(format.percent(0.052), "5.2 %");
  assert.equal(format.percent(0.996), "100 %");
  assert.equal(format.change(-0.1), "−10 %");
  assert.equal(format.change(-0.0004), "±0 %");
  assert.equal(format.number(-0.25), "−0.25");
  assert.equal(format.slotSeconds(9e5), "< 0.001 slot·s");
  assert.equal(format.slotSeconds(0), "0 slot·s");
  assert.equal(format.bytes(3_810_000), "3.81 MB");
  assert.equal(format.plural(1, "session"), "1 session");
  assert.equal(format.plural(37, "session"), "37 sessions");
});

test("rewards have three digits unless they are whole", () => {
  const written = [null, 0, 1, 0.09, -0.5, 1234.5].map(format.reward);
  assert.deepEqual(written, ["–", "0", "1", "0.090", "−0.500", "1234.5"]);
});

test("control and direction marks become visible, words stay", () => {
  assert.equal(format.visible("a\u001b[31mb\u202ec"), "a\\u001b[31mb\\u202ec");
  assert.equal(format.visible("日本 ünï </script>\n\tx"), "日本 ünï </script>\n\tx");
});
