import assert from "node:assert/strict";
import { test } from "node:test";
import { computed, effect, signal } from "./signals";

test("an effect runs at once, and again for every change of what it read", () => {
  const a = signal(1);
  const said: number[] = [];
  const stop = effect(() => {
    said.push(a.value);
  });
  a.value = 2;
  a.value = 2;
  stop();
  a.value = 3;
  assert.deepEqual(said, [1, 2]);
});

test("what is only peeked at, or no longer read, is not followed", () => {
  const [which, a, b] = [signal(true), signal(1), signal(10)];
  const said: number[] = [];
  effect(() => {
    said.push(which.value ? a.value : b.peek());
  });
  which.value = false;
  a.value = 2;
  b.value = 20;
  assert.deepEqual(said, [1, 10]);
});

test("readers of a computed value hear of it only if it is another one", () => {
  const a = signal(1);
  const isOdd = computed(() => a.value % 2 === 1);
  const said: boolean[] = [];
  effect(() => {
    said.push(isOdd.value);
  });
  a.value = 3;
  a.value = 4;
  assert.deepEqual(said, [true, false]);
});

test("who reads a value by two ways sees both of one time", () => {
  const a = signal(1);
  const double = computed(() => a.value * 2);
  const said: string[] = [];
  effect(() => {
    said.push(`${a.value} ${double.value}`);
  });
  a.value = 2;
  assert.deepEqual(said, ["1 2", "2 4"]);
});

test("a computed value is worked out when asked for, once for what it has read", () => {
  const a = signal(1);
  let worked = 0;
  const next = computed(() => {
    worked += 1;
    return a.value + 1;
  });
  assert.equal(worked, 0);
  assert.deepEqual([next.value, next.value, next.peek(), worked], [2, 2, 2, 1]);
  a.value = 5;
  assert.deepEqual([next.value, worked], [6, 2]);
});

test("an effect may set what another reads, and what itself reads", () => {
  const [a, b] = [signal(0), signal(0)];
  const said: number[] = [];
  effect(() => {
    if (a.value < 3) a.value = a.peek() + 1;
  });
  effect(() => {
    b.value = a.value * 10;
  });
  effect(() => {
    said.push(b.value);
  });
  a.value = 7;
  assert.deepEqual([a.value, said], [7, [30, 70]]);
});

test("an effect that an effect ends is not run any more", () => {
  const a = signal(0);
  const said: number[] = [];
  const stops: (() => void)[] = [];
  effect(() => {
    if (a.value === 1) stops.forEach((stop) => stop());
  });
  stops.push(effect(() => void said.push(a.value)));
  a.value = 1;
  assert.deepEqual(said, [0]);
});
