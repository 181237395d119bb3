// Bundles every src/**/*.test.ts and runs them with node's own runner.
import { spawnSync } from "node:child_process";
import { globSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const wanted = process.argv.slice(2);
const entries = globSync("src/**/*.test.{ts,tsx}")
  .filter((path) => wanted.length === 0 || wanted.some((word) => path.includes(word)))
  .sort();
const out = mkdtempSync(".tests-"); // where bundled tests still find packages
try {
  await build({
    entryPoints: entries,
    outdir: out,
    outbase: "src",
    bundle: true,
    platform: "node",
    external: ["esbuild"],
    format: "esm",
    target: "node20",
    jsx: "automatic",
    jsxImportSource: "preact",
    outExtension: { ".js": ".mjs" },
    sourcemap: "inline",
    logLevel: "warning",
  });
  const files = globSync(join(out, "**/*.test.mjs"));
  const run = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], {
    stdio: "inherit",
  });
  process.exitCode = run.status ?? 1;
} finally {
  rmSync(out, { recursive: true, force: true });
}
