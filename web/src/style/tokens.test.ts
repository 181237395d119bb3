/** Holds the palette apart for every kind of sight, and readable on its background. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { channels, contrast } from "../model/palette";

type Rgb = [number, number, number];
type Matrix = [Rgb, Rgb, Rgb];

const [css = ""] = readFileSync("src/style/tokens.css", "utf8").split("@media print");
const [lightCss = "", darkCss = ""] = css.split(':root[data-theme="dark"]');

function tokens(text: string): Map<string, string> {
  return new Map([...text.matchAll(/--([\w-]+):\s*(#[0-9a-f]{6})/g)].map((m) => [m[1]!, m[2]!]));
}

const THEMES = { light: tokens(lightCss), dark: tokens(darkCss) };
const ROLES = ["generate", "tool", "env", "reward", "train", "waiting"].map((one) => `role-${one}`);
const NAMES = ["name-0", "name-1", "name-2", "name-3"];

// Machado, Oliveira and Fernandes (2009), full severity, on linear light.
const SIGHTS: Record<string, Matrix> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protan: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deutan: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritan: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

function linear(colour: string): Rgb {
  return channels(colour).map((byte) => {
    const value = byte / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as Rgb;
}

function seen(colour: string, sight: Matrix): Rgb {
  const from = linear(colour);
  return sight.map((row) => {
    const sum = row.reduce((total, weight, i) => total + weight * from[i]!, 0);
    return Math.min(1, Math.max(0, sum));
  }) as Rgb;
}

function lab([r, g, b]: Rgb): Rgb {
  const f = (t: number): number => (t > 216 / 24389 ? Math.cbrt(t) : ((24389 / 27) * t + 16) / 116);
  const x = f((0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047);
  const y = f(0.2126729 * r + 0.7151522 * g + 0.072175 * b);
  const z = f((0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

function nearest(theme: Map<string, string>, names: readonly string[]): [number, string] {
  let best: [number, string] = [Infinity, ""];
  for (const [sight, matrix] of Object.entries(SIGHTS)) {
    names.forEach((one, i) => {
      for (const other of names.slice(i + 1)) {
        const a = lab(seen(theme.get(one)!, matrix));
        const b = lab(seen(theme.get(other)!, matrix));
        const distance = Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
        if (distance < best[0]) best = [distance, `${one} and ${other}, ${sight}`];
      }
    });
  }
  return best;
}

for (const [name, theme] of Object.entries(THEMES)) {
  test(`${name}: roles lie 30 apart for every kind of sight, all names 20`, () => {
    const [roles, closestRoles] = nearest(theme, ROLES);
    assert.ok(roles >= 30, `${closestRoles}: ${roles.toFixed(1)}`);
    const [all, closest] = nearest(theme, [...ROLES, ...NAMES]);
    assert.ok(all >= 20, `${closest}: ${all.toFixed(1)}`);
  });

  test(`${name}: every colour of a bar stands out from the page`, () => {
    for (const one of [...ROLES, ...NAMES, "role-other", "role-sync"]) {
      const ratio = contrast(theme.get(one)!, theme.get("bg")!);
      assert.ok(ratio >= 3, `${one}: ${ratio.toFixed(2)}`);
    }
  });

  test(`${name}: text can be read on everything it stands on`, () => {
    const grounds = ["bg", "bg-raised", "bg-hover"];
    const pairs: [string, string[]][] = [
      ["text", [...grounds, "accent-bg", "bad-bg", "warn-bg"]],
      ["text-dim", grounds],
      ["accent", [...grounds, "accent-bg"]],
      ["bad", ["bg", "bg-raised", "bad-bg"]],
      ["warn", ["bg", "warn-bg"]],
      ["good", ["bg", "good-bg"]],
      ["accent-text", ["accent"]],
    ];
    for (const [ink, backgrounds] of pairs) {
      for (const ground of backgrounds) {
        const ratio = contrast(theme.get(ink)!, theme.get(ground)!);
        assert.ok(ratio >= 4.5, `${ink} on ${ground}: ${ratio.toFixed(2)}`);
      }
    }
  });
}

test("dark has a value of its own for every colour", () => {
  assert.deepEqual([...THEMES.dark.keys()].sort(), [...THEMES.light.keys()].sort());
});
