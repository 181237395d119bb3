import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as format from "./format";

type Case = [number, string];

const S = 1e9;

test("durations read as they do in sentences and terminals", () => {
  const cases = JSON.parse(readFileSync("../tests/golden/durations.json", "utf8")) as Case[];
  for (const [ns, text] of cases) assert.equal(format.duration(ns), text);
  assert.equal(format.duration(null), "–");
  assert.equal(format.duration(-5 * S), "−5.00 s");
});

test("the parts of a sum add up as they read, as in terminals", () => {
  const cases = JSON.parse(readFileSync("../tests/golden/sums.json", "utf8")) as [
    number,
    number[],
    string,
    string[],
  ][];
  for (const [wholeNs, partsNs, whole, parts] of cases) {
    const minus = parts.map((one) => one.replace("-", "−"));
    assert.deepEqual(format.sum(wholeNs, partsNs), { whole, parts: minus });
  }
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
