import assert from "node:assert/strict";
import { test } from "node:test";
import { commandFor } from "./command";
import { formatRange, formatRoute, parseRange, parseRoute } from "./route";

test("an address says run, page, what it is about, and how it is shown", () => {
  const route = parseRoute(
    "#/gsm8k%2Fgrpo/step/41?t=12.3-45.6&f=phase:toolcall%20-env:swe&sort=-age",
  );
  assert.deepEqual(route, {
    run: "gsm8k/grpo",
    page: "step",
    arg: "41",
    params: { t: "12.3-45.6", f: "phase:toolcall -env:swe", sort: "-age" },
  });
});

test("every address survives a round trip", () => {
  const odd = "a/b ?#&=%é<script>";
  for (const page of ["", "now", "session"] as const) {
    const route = { run: odd, page, arg: page ? odd : "", params: { f: 'x:"a, b" y>3', t: "0-1" } };
    assert.deepEqual(parseRoute(formatRoute(route)), route);
  }
});

test("what is no address leads to the list of runs or the run's home", () => {
  assert.equal(parseRoute("").run, "");
  assert.equal(parseRoute("#/").run, "");
  assert.deepEqual(parseRoute("#/r/nonsense/3").page, "");
  assert.equal(parseRoute("#/100%/now").run, "100%");
});

test("ranges of time are read only when they are ranges", () => {
  assert.deepEqual(parseRange("12.5-45"), { from: 12.5, to: 45 });
  assert.deepEqual(parseRange(formatRange({ from: -1, to: 0.25 })), { from: -1, to: 0.25 });
  for (const text of [undefined, "", "5", "5-5", "9-3", "a-b", "1e9-"]) {
    assert.equal(parseRange(text), null);
  }
});

test("the same answer has its command line, quoted for a shell", () => {
  const route = {
    run: "my run",
    page: "sessions",
    arg: "",
    params: { f: "ran>30s it's" },
  } as const;
  assert.equal(commandFor(route), `rollscope sessions 'my run' --filter 'ran>30s it'\\''s'`);
  assert.equal(
    commandFor({ run: "r", page: "step", arg: "4", params: {} }),
    "rollscope steps r --step 4",
  );
  assert.equal(commandFor({ run: "", page: "", arg: "", params: {} }), null);
});
