import assert from "node:assert/strict";
import { test } from "node:test";
import type { Staircase } from "./answers";
import { rowsWithin } from "./stairs";

test("sessions are drawn that ran while the step did, if only in part", () => {
  const rows = [
    [5, 10],
    [5, 11],
    [12, 14],
    [5, 30],
    [19, 30],
    [20, 30],
  ].map(([start_ns, end_ns]) => ({ start_ns, end_ns }));
  const stairs = { start_ns: 10, end_ns: 20, rows } as unknown as Staircase;
  assert.deepEqual(rowsWithin(stairs), rows.slice(1, 5));
});
