/**
 * Pixel colours of the timeline: each slot at each of 256 strengths, ready to be stored.
 *
 * The canvas is opaque, so strength is blended with the background once per theme, not per pixel.
 */

import { channels } from "./palette";
import { SLOT_COUNT } from "./slots";

export const STRENGTHS = 256;
/** The faintest a covered pixel is drawn: a lone short span must still be seen. */
export const FAINTEST = 56;

/** Colours as the pixel buffer stores them (ABGR in a little-endian word). */
export interface Inks {
  /** `slots[slot * STRENGTHS + strength]`. */
  readonly slots: Uint32Array;
  readonly background: number;
  /** Marks of flags, by bit position of the flag; 0 where a flag has none. */
  readonly marks: Uint32Array;
  readonly line: number;
}

/** Colours of a theme as `#rrggbb`. */
export interface ThemeColours {
  readonly background: string;
  readonly slots: readonly string[];
  readonly text: string;
  readonly accent: string;
  readonly line: string;
}

/** Make the pixel colours of a theme. */
export function makeInks(theme: ThemeColours): Inks {
  const slots = new Uint32Array(SLOT_COUNT * STRENGTHS);
  for (let slot = 0; slot < SLOT_COUNT; slot++) {
    for (let strength = 0; strength < STRENGTHS; strength++) {
      slots[slot * STRENGTHS + strength] = blend(
        theme.slots[slot] ?? theme.text,
        theme.background,
        strength / (STRENGTHS - 1),
      );
    }
  }
  const text = pixel(theme.text);
  const accent = pixel(theme.accent);
  const half = blend(theme.text, theme.background, 0.6);
  return {
    slots,
    background: pixel(theme.background),
    // error, open, stuck, lost, retried, (session), (wait), search hit
    marks: Uint32Array.of(text, accent, text, text, half, 0, 0, accent),
    line: pixel(theme.line),
  };
}

function blend(over: string, under: string, share: number): number {
  const top = channels(over);
  const bottom = channels(under);
  const [r, g, b] = top.map((value, at) =>
    Math.round(value * share + (bottom[at] ?? 0) * (1 - share)),
  ) as [number, number, number];
  return word(r, g, b);
}

function pixel(colour: string): number {
  return word(...channels(colour));
}

function word(r: number, g: number, b: number): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}
