/**
 * Marks of flagged spans in the pixel picture: at least three pixels wide, painted last.
 *
 * A flag is told by shape, never by hue: error an outline, stuck a thick one, lost a torn right
 * edge, open a bright right edge, retried a dashed foot, a search hit a band on top.
 */

import { FLAG } from "./frame";
import type { Inks } from "./inks";
import type { PixelLine } from "./lod";

export const MARK_PX = 3;

/** Where a row of the picture lies. */
export interface RowBox {
  readonly y: number;
  readonly height: number;
}

/** The pixels that are painted on. */
export interface Picture {
  readonly pixels: Uint32Array;
  readonly width: number;
  readonly height: number;
}

/** From the one that may be painted over to the one that may not; `index` is the bit's position. */
const ORDER = [
  { flag: FLAG.retried, index: 4 },
  { flag: FLAG.open, index: 1 },
  { flag: FLAG.hit, index: 7 },
  { flag: FLAG.lost, index: 3 },
  { flag: FLAG.error, index: 0 },
  { flag: FLAG.stuck, index: 2 },
] as const;

/** Paint the marks of one line over its row. */
export function paintMarks(picture: Picture, line: PixelLine, box: RowBox, inks: Inks): void {
  if (!line.hasFlags) {
    return;
  }
  for (let at = 0; at < line.outlineCount; at++) {
    const from = line.outlines[at * 3]!;
    const until = line.outlines[at * 3 + 1]!;
    paintOutline(picture, from, until, line.outlines[at * 3 + 2]!, box, inks);
  }
  const flagged = flaggedPixels(line);
  for (const { flag, index } of ORDER) {
    for (const x of flagged) {
      if ((line.flags[x]! & flag) !== 0) {
        paintBlock(picture, x, flag, box, inks.marks[index]!);
      }
    }
  }
}

function flaggedPixels(line: PixelLine): number[] {
  const found: number[] = [];
  for (let x = 0; x < line.width; x++) {
    if (line.flags[x] !== 0) {
      found.push(x);
    }
  }
  return found;
}

/** The mark of a span too narrow to be outlined. */
function paintBlock(
  picture: Picture,
  x: number,
  flag: number,
  { y, height }: RowBox,
  ink: number,
): void {
  const third = Math.max(Math.ceil(height / 3), 1);
  const left = Math.min(Math.max(x - 1, 0), Math.max(picture.width - MARK_PX, 0));
  if (flag === FLAG.retried) {
    fill(picture, left, y + height - third, MARK_PX, third, ink);
  } else if (flag === FLAG.hit) {
    fill(picture, left, y, MARK_PX, third, ink);
  } else {
    fill(picture, left, y, MARK_PX, height, ink);
  }
}

function paintOutline(
  picture: Picture,
  from: number,
  until: number,
  flags: number,
  { y, height }: RowBox,
  inks: Inks,
): void {
  const width = until - from;
  if (flags & FLAG.retried) {
    for (let x = from; x < until; x += 6) {
      fill(picture, x, y + height - 1, Math.min(MARK_PX, until - x), 1, inks.marks[4]!);
    }
  }
  if (flags & FLAG.hit) {
    fill(picture, from, y, width, Math.min(2, height), inks.marks[7]!);
  }
  if (flags & FLAG.open) {
    fill(picture, until - MARK_PX, y, MARK_PX, height, inks.marks[1]!);
  }
  if (flags & (FLAG.error | FLAG.stuck)) {
    const ink = inks.marks[0]!;
    const thick = flags & FLAG.stuck ? 2 : 1;
    fill(picture, from, y, width, thick, ink);
    fill(picture, from, y + height - thick, width, thick, ink);
    fill(picture, from, y, thick + 1, height, ink);
    fill(picture, until - thick - 1, y, thick + 1, height, ink);
  }
  if (flags & FLAG.lost) {
    tear(picture, until, { y, height }, inks);
  }
}

/** A ragged right edge: the span was cut off, it did not end. */
function tear(picture: Picture, until: number, { y, height }: RowBox, inks: Inks): void {
  for (let line = 0; line < height; line++) {
    const depth = [0, 1, 2, 3, 2, 1][line % 6] ?? 0;
    fill(picture, until - depth, y + line, depth, 1, inks.background);
    fill(picture, until - depth - MARK_PX, y + line, MARK_PX, 1, inks.marks[3]!);
  }
}

/** Fill a rectangle, cut to the picture. */
export function fill(
  { pixels, width, height }: Picture,
  left: number,
  top: number,
  wide: number,
  high: number,
  ink: number,
): void {
  const x0 = Math.max(left, 0);
  const x1 = Math.min(left + wide, width);
  const y1 = Math.min(top + high, height);
  if (x1 <= x0) {
    return;
  }
  for (let y = Math.max(top, 0); y < y1; y++) {
    pixels.fill(ink, y * width + x0, y * width + x1);
  }
}
