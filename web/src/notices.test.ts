import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { build } from "esbuild";

test("every package in the bundle stands in the notices, and no other", async () => {
  const result = await build({
    entryPoints: ["src/main.tsx", "src/report/main.tsx"],
    outdir: "unused",
    bundle: true,
    write: false,
    metafile: true,
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "silent",
  });
  const packages = new Set<string>();
  for (const path of Object.keys(result.metafile.inputs)) {
    const match = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path);
    if (match) packages.add(match[1]!);
  }
  const notices = readFileSync("../THIRD_PARTY_NOTICES.md", "utf8");
  const listed = [...notices.matchAll(/^## (.+)$/gm)].map((found) => found[1]!);
  assert.deepEqual([...packages].sort(), listed.sort());
});
