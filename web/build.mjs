// Builds the page into the Python package, under fixed names and the same bytes everywhere.
//
//   node build.mjs           writes
//   OUT=folder node build.mjs   writes there instead
//   node build.mjs --check   says whether what is committed is what would be built
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { minify } from "terser";

const OUT = process.env.OUT
  ? pathToFileURL(`${process.env.OUT}/`)
  : new URL("../src/rollscope/webui/static/", import.meta.url);
const LIMITS = {
  "app.js": { bytes: 250 * 1024, gzipped: 80 * 1024 },
  "report.js": { bytes: 260 * 1024, gzipped: 86 * 1024 },
  "app.css": { bytes: 60 * 1024, gzipped: 10 * 1024 },
};

async function bundle(entry, name) {
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["es2022", "chrome110", "firefox115", "safari16.4"],
    inject: ["src/jsx.ts"],
    tsconfigRaw: {
      compilerOptions: { jsx: "react", jsxFactory: "h", jsxFragmentFactory: "Fragment" },
    },
    legalComments: "none",
    charset: "utf8",
    outfile: name,
    logLevel: "warning",
    absWorkingDir: new URL(".", import.meta.url).pathname,
  });
  const file = result.outputFiles[0];
  return name.endsWith(".js") ? squeeze(file.text) : file.contents;
}

/** Terser names and orders things such that gzip finds more to repeat: 3 % less than esbuild alone.
 *
 * Nothing may be taken for free of effects here, such as reading a property: that is how readers of
 * a signal become known. */
async function squeeze(text) {
  const { code } = await minify(text, {
    ecma: 2022,
    compress: {
      passes: 3,
      toplevel: true,
      unsafe_arrows: true,
      lhs_constants: false,
      sequences: false,
    },
    mangle: { toplevel: true },
  });
  return Buffer.from(code);
}

const files = {
  "app.js": await bundle("src/main.tsx", "app.js"),
  "report.js": await bundle("src/report/main.tsx", "report.js"),
  "app.css": await bundle("src/style/index.css", "app.css"),
  "index.html": await readFile(new URL("src/index.html", import.meta.url)),
};

const problems = [];
for (const [name, contents] of Object.entries(files)) {
  const gzipped = gzipSync(contents, { level: 9 }).length;
  console.log(`${name}: ${contents.length} bytes, ${gzipped} gzipped`);
  const limit = LIMITS[name];
  if (limit && (contents.length > limit.bytes || gzipped > limit.gzipped)) {
    problems.push(`${name} is over its budget of ${limit.bytes} bytes, ${limit.gzipped} gzipped`);
  }
}

if (process.argv.includes("--check")) {
  for (const [name, contents] of Object.entries(files)) {
    const committed = await readFile(new URL(name, OUT)).catch(() => null);
    if (!committed?.equals(contents)) {
      problems.push(`${name} is not what its source builds: run \`make web\` and commit it`);
    }
  }
} else {
  await mkdir(OUT, { recursive: true });
  for (const [name, contents] of Object.entries(files)) {
    await writeFile(new URL(name, OUT), contents);
  }
}
for (const problem of problems) console.error(problem);
process.exit(problems.length ? 1 : 0);
