/** The colours of the canvases, read from the style sheet whenever the theme changes. */

import { type Inks, makeInks, type ThemeColours } from "../model/inks";
import { inkOn, readColour } from "../model/palette";
import { SLOT_VARIABLES } from "../model/slots";
import { shownTheme } from "../state/theme";

export interface CanvasTheme extends ThemeColours {
  readonly inks: Inks;
  /** Black or white for text on each slot. */
  readonly onSlots: readonly string[];
  readonly dim: string;
  readonly raised: string;
  readonly font: string;
}

let made: { name: string; theme: CanvasTheme } | null = null;

/** Give the colours of the theme that is shown. */
export function canvasTheme(): CanvasTheme {
  const name = shownTheme.value;
  if (made?.name !== name) {
    made = { name, theme: readTheme() };
  }
  return made.theme;
}

function readTheme(): CanvasTheme {
  const slots = SLOT_VARIABLES.map(readColour);
  const colours = {
    background: readColour("--bg"),
    slots,
    text: readColour("--text"),
    accent: readColour("--accent"),
    line: readColour("--line"),
  };
  return {
    ...colours,
    inks: makeInks(colours),
    onSlots: slots.map((colour) => inkOn(colour)),
    dim: readColour("--text-dim"),
    raised: readColour("--bg-raised"),
    font: `11px ${readColour("--font") || "sans-serif"}`,
  };
}

/** Size a canvas for sharp pixels; more than two per CSS pixel cost time and show nothing. */
export function sizeCanvas(canvas: HTMLCanvasElement, width: number, height: number): number {
  const ratio = pixelRatio();
  const wide = Math.max(Math.round(width * ratio), 1);
  const high = Math.max(Math.round(height * ratio), 1);
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  return ratio;
}

export function pixelRatio(): number {
  return Math.min(window.devicePixelRatio || 1, 2);
}
