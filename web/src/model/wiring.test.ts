import assert from "node:assert/strict";
import { test } from "node:test";
import type { Overview } from "./answers";
import { wiringLines } from "./wiring";

function textsOf(name: string, address: URL | null): string[] {
  return wiringLines({ name } as Overview, address).map((line) => line.text);
}

test("a run's name is quoted as a shell needs it", () => {
  const texts = textsOf("it's mine; rm", null);
  assert.equal(texts[0], "rollscope doctor 'it'\\''s mine; rm'");
});

test("a page on a port says how to get there, and where its answers are", () => {
  const texts = textsOf("a/b", new URL("http://127.0.0.1:7077/proxy/"));
  assert.equal(texts[0], "ssh -L 7077:localhost:7077 USER@HOST");
  assert.match(texts.at(-1) ?? "", /http:\/\/127\.0\.0\.1:7077\/proxy\/api\/v1\/run\/a%2Fb\//);
});

test("a page that has no server names none", () => {
  assert.ok(textsOf("run", null).every((text) => text.startsWith("rollscope ")));
});
