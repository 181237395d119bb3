/**
 * The whole picture of the timeline's spans, painted into one array of pixels.
 *
 * Pure: columns, a window, a layout and colours go in, pixels come out, so it is tested and timed
 * without a browser. The canvas takes the array with a single `putImageData`.
 */

import type { FarSilhouettes } from "./farsilhouettes";
import { FAINTEST, type Inks, STRENGTHS } from "./inks";
import { colourLine, type LineView, PixelLine } from "./lod";
import { paintMarks, type Picture, type RowBox } from "./marks";
import { type SilhouetteBox, SilhouettePainter } from "./silhouette";
import { SYNC_SLOT, WAITING_SLOT } from "./slots";
import type { SpanTable } from "./spans";

/** One row of a lane, in device pixels. */
export interface Strip extends RowBox {
  readonly lane: number;
  readonly row: number;
}

export interface PictureLayout {
  readonly strips: readonly Strip[];
  readonly silhouettes: readonly SilhouetteBox[];
}

/** Paints pictures of one width; keeps its line between frames. */
export class PicturePainter {
  private line: PixelLine;
  private colours: Uint32Array;
  private readonly silhouettes: SilhouettePainter;

  constructor(readonly width: number) {
    this.line = new PixelLine(width);
    this.colours = new Uint32Array(width);
    this.silhouettes = new SilhouettePainter(width);
  }

  /** Paint everything in view; strips outside the picture are passed over. */
  paint(
    picture: Picture,
    tables: readonly SpanTable[],
    layout: PictureLayout,
    view: LineView,
    inks: Inks,
    far: FarSilhouettes | null = null,
  ): void {
    picture.pixels.fill(inks.background);
    for (const strip of layout.strips) {
      if (strip.y < picture.height && strip.y + strip.height > 0) {
        this.paintStrip(picture, tables, strip, view, inks);
      }
    }
    for (const box of layout.silhouettes) {
      if (box.y >= picture.height || box.y + box.height <= 0) {
        continue;
      }
      if (far !== null) {
        this.silhouettes.paintFar(picture, far, box, view, inks, this.line);
      } else {
        this.silhouettes.paint(picture, tables, box, view, inks, this.line);
      }
    }
  }

  private paintStrip(
    picture: Picture,
    tables: readonly SpanTable[],
    strip: Strip,
    view: LineView,
    inks: Inks,
  ): void {
    const line = this.line;
    line.clear();
    line.addRow(tables, strip.lane, strip.row, view);
    if (line.isEmpty && !line.hasFlags) {
      return;
    }
    colourLine(line, inks, this.colours);
    const { pixels, width, height } = picture;
    const last = Math.min(strip.y + strip.height, height);
    for (let y = Math.max(strip.y, 0); y < last; y++) {
      pixels.set(this.colours, y * width);
    }
    paintTextures(picture, line, strip, inks);
    paintMarks(picture, line, strip, inks);
  }
}

/** Waiting is hatched, so that it recedes; weight sync is dotted. */
function paintTextures(picture: Picture, line: PixelLine, box: RowBox, inks: Inks): void {
  const { pixels, width, height } = picture;
  const last = Math.min(box.y + box.height, height);
  for (let x = 0; x < line.width; x++) {
    const slot = line.slots[x]!;
    if ((slot !== WAITING_SLOT && slot !== SYNC_SLOT) || line.strengths[x]! === 0) {
      continue;
    }
    const faint = inks.slots[slot * STRENGTHS + FAINTEST]!;
    for (let y = Math.max(box.y, 0); y < last; y++) {
      if (slot === WAITING_SLOT ? (x + y) % 6 >= 2 : x % 4 < 2 && (y - box.y) % 4 < 2) {
        pixels[y * width + x] = faint;
      }
    }
  }
}
