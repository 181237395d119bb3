import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { unnest } from "./nested";
import { unpack } from "./unpack";

const GOLDEN = "../tests/golden/";

async function bytesOf(name: string): Promise<ArrayBuffer> {
  const file = await readFile(GOLDEN + name);
  return file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength) as ArrayBuffer;
}

test("an answer is read as Python wrote it", async () => {
  const golden = JSON.parse(await readFile(`${GOLDEN}report/compact.json`, "utf8")) as {
    lines: { row: Record<string, unknown>; ran_ns: number }[];
    answer: unknown;
    written: unknown;
  };
  const read = unpack(golden.written, (number, field) => {
    const { row, ran_ns } = golden.lines[number]!;
    return field === "ran_ns" ? ran_ns : row[field];
  });
  assert.equal(JSON.stringify(read), JSON.stringify(golden.answer));
});

test("a nested timeline is the raw frame again, byte by byte", async () => {
  const made = new Uint8Array(unnest(await bytesOf("report/nested.bin")));
  const raw = new Uint8Array(await bytesOf("view-frames/raw.rsv"));
  assert.deepEqual(made, raw.subarray(0, made.length));
  assert.ok(raw.length - made.length < 8);
});
