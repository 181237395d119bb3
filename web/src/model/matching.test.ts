import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProcessLine, SessionLine } from "./answers";
import { parseFilter } from "./filter";
import { matchesLine, unknownFields } from "./matching";

const LINE = {
  row: {
    span_id: "00000000000000ab",
    host: "gpu-07",
    pool: "",
    task_key: "swe/Fix-1",
    family: "swe",
    group: null,
    attempt: 0,
    step: 4,
    consumed_step: 5,
    status: "ok",
    outcome: "failed",
    reason: "TimeoutError: slow",
    reward: null,
    tokens_out: 120,
    attrs: { temperature: 0.5, greedy: true, note: "hard one" },
  },
  ran_ns: 31e9,
  phases: { generate: 20e9, toolcall: 5e9 },
} as unknown as SessionLine;

function holds(text: string, process?: ProcessLine): boolean {
  const parsed = parseFilter(text);
  assert.ok("filter" in parsed, text);
  return matchesLine(parsed.filter, LINE, process);
}

const TRUE = [
  "",
  "phase:toolcall host:gpu-07 ran>30s",
  "outcome:failed,timeout",
  "-family:math",
  "reward:none",
  "-reward<=0",
  "pool:none replica:none group:none",
  "id:ab",
  "tokens>=120 tokens<=120",
  "step:5 consumed:5 dispatched:4",
  "attr.temperature:0.50 attr.greedy:true attr.absent:none",
  '"fix-1" HARD toolcall',
  "role:none rank:none",
];
const FALSE = [
  "phase:reward",
  "ran<31s",
  "reward<=0",
  "outcome:none",
  "-outcome:failed",
  "step:4",
  "attr.note>1",
  "absent-text",
  "tool:shell",
];

test("a filter lets through what it says", () => {
  for (const text of TRUE) assert.equal(holds(text), true, text);
});

test("a filter keeps out everything else", () => {
  for (const text of FALSE) assert.equal(holds(text), false, text);
});

test("role and rank are those of the process", () => {
  assert.equal(holds("role:worker rank>1", { role: "worker", rank: 2 } as ProcessLine), true);
});

test("fields that only spans have are named", () => {
  const parsed = parseFilter("tool:shell -env:none phase:toolcall attr.x:1");
  assert.ok("filter" in parsed);
  assert.deepEqual(unknownFields(parsed.filter), ["tool", "env"]);
});
