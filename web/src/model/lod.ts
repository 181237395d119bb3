/**
 * Level of detail: any number of spans into one line of pixels, by the same rule at every zoom.
 *
 * A pixel keeps the role with most covered time (its colour), how much of it is covered (its
 * strength) and the OR of the flags of all spans that touch it. A line is computed once and then
 * copied to the height of its row, so the cost is one pass over the spans in view.
 */

import { FLAG, MARKED_FLAGS, OPEN_DURATION } from "./frame";
import { FAINTEST, type Inks, STRENGTHS } from "./inks";
import { FIRST_OTHER_SLOT, SLOT_COUNT } from "./slots";
import { firstEndingAfter, firstStartingAt, rangeOf, type SpanTable } from "./spans";

/** A span narrower than this gets its mark as a block, a wider one as an outline. */
export const OUTLINE_FROM_PX = 6;
/** So that a span without length leaves its trace in a pixel. */
const INSTANT = 1e-9;
/** Up to here a loop is quicker than `fill`. */
const SHORT_PX = 24;
const LARGEST_RUN_LIST = 4096;

/** What is seen: a window of time over a number of device pixels. */
export interface LineView {
  /** Nanoseconds since the run's first moment. */
  readonly t0: number;
  readonly t1: number;
  readonly width: number;
  /** Where open spans end. */
  readonly now: number;
}

/** One line of pixels, made anew for each row of the picture. */
export class PixelLine {
  readonly slots: Uint8Array;
  readonly strengths: Uint8Array;
  readonly flags: Uint8Array;
  /** Wide flagged spans as triples: first pixel, end pixel, flags. */
  readonly outlines = new Int32Array(LARGEST_RUN_LIST * 3);
  outlineCount = 0;
  /** Whether any pixel carries a flag. */
  hasFlags = false;
  isEmpty = true;

  private readonly cover = new Float64Array(SLOT_COUNT);
  private readonly touched = new Uint8Array(SLOT_COUNT);
  private touchedCount = 0;
  private pixel = 0;

  constructor(readonly width: number) {
    this.slots = new Uint8Array(width);
    this.strengths = new Uint8Array(width);
    this.flags = new Uint8Array(width);
  }

  /** Forget everything, before the next row. */
  clear(): void {
    this.strengths.fill(0);
    if (this.hasFlags) {
      this.flags.fill(0);
    }
    this.hasFlags = false;
    this.isEmpty = true;
    this.outlineCount = 0;
    this.pixel = 0;
  }

  /** Take in one row of a lane, from the table and from what has come since it was loaded. */
  addRow(tables: readonly SpanTable[], lane: number, row: number, view: LineView): void {
    const [main, newer] = tables;
    if (main === undefined) {
      return;
    }
    const [low, high] = visibleRange(main, lane, row, view);
    const [lowNew, highNew] = newer ? visibleRange(newer, lane, row, view) : [0, 0];
    let at = low;
    for (let index = lowNew; newer !== undefined && index < highNew; index++) {
      const until = firstStartingAt(main, at, high, tickIn(main, newer, index));
      this.add(main, at, until, view);
      this.add(newer, index, index + 1, view);
      at = until;
    }
    this.add(main, at, high, view);
    this.decide(this.pixel, this.touchedCount);
    this.touchedCount = 0;
  }

  /**
   * Take in the spans [low, high) of one row; they must not lie before what was taken in.
   *
   * One loop over local variables: it runs a million times a frame, and calls in it cost threefold.
   */
  private add(table: SpanTable, low: number, high: number, view: LineView): void {
    const { start, dur, slot, flags, weight } = table;
    const { cover, touched, width } = this;
    const perTick = (table.tickNs * width) / (view.t1 - view.t0);
    const tick0 = (view.t0 - table.originNs) / table.tickNs;
    const nowTick = (view.now - table.originNs) / table.tickNs;
    let pixel = this.pixel;
    let count = this.touchedCount;
    for (let index = low; index < high; index++) {
      const from = start[index]!;
      const length = dur[index]!;
      let x0 = (from - tick0) * perTick;
      if (x0 >= width) {
        break;
      }
      let x1 = x0 + length * perTick;
      if (length === OPEN_DURATION) {
        x1 = x0 + Math.max(nowTick - from, 0) * perTick;
      }
      x0 = x0 < pixel ? pixel : x0;
      x1 = x1 > width ? width : x1 < x0 ? x0 : x1;
      const share = weight === null ? 1 : weight[index]! / 255;
      const colour = slot[index]!;
      const first = x0 | 0;
      const last = x1 | 0;
      if (first !== pixel) {
        this.decide(pixel, count);
        pixel = first;
        count = 0;
      }
      if (cover[colour] === 0) {
        touched[count++] = colour;
      }
      if (last === first) {
        cover[colour]! += (x1 - x0) * share + INSTANT;
      } else {
        cover[colour]! += (first + 1 - x0) * share + INSTANT;
        this.decide(first, count);
        if (last > first + 1) {
          this.stretch(colour, first + 1, last, share);
        }
        cover[colour] = (x1 - last) * share;
        touched[0] = colour;
        count = cover[colour] === 0 ? 0 : 1;
        pixel = last;
      }
      if ((flags[index]! & MARKED_FLAGS) !== 0) {
        this.flag(first, x1, flags[index]!, share < 1);
      }
    }
    this.pixel = pixel;
    this.touchedCount = count;
  }

  /** Colour whole pixels that one span covers. */
  private stretch(slot: number, from: number, until: number, share: number): void {
    const strength = Math.max((share * 255) | 0, FAINTEST);
    if (until - from > SHORT_PX) {
      this.slots.fill(slot, from, until);
      this.strengths.fill(strength, from, until);
      return;
    }
    for (let x = from; x < until; x++) {
      this.slots[x] = slot;
      this.strengths[x] = strength;
    }
  }

  /** Decide a pixel from what covers it; names without a role count together at first. */
  private decide(pixel: number, count: number): void {
    if (count === 0) {
      return;
    }
    const { cover, touched } = this;
    let covered = 0;
    let most = -1;
    let best = 0;
    let others = 0;
    let mostOther = -1;
    let bestOther = 0;
    for (let at = 0; at < count; at++) {
      const slot = touched[at]!;
      const each = cover[slot]!;
      cover[slot] = 0;
      covered += each;
      if (slot >= FIRST_OTHER_SLOT) {
        others += each;
        bestOther = each > mostOther ? slot : bestOther;
        mostOther = each > mostOther ? each : mostOther;
      } else if (each > most) {
        best = slot;
        most = each;
      }
    }
    if (pixel < this.width) {
      const strength = (covered * 255) | 0;
      this.slots[pixel] = others > most ? bestOther : best;
      this.strengths[pixel] = strength > 255 ? 255 : strength < FAINTEST ? FAINTEST : strength;
      this.isEmpty = false;
    }
  }

  private flag(first: number, x1: number, flags: number, isCell: boolean): void {
    this.hasFlags = true;
    const isWide = !isCell && x1 - first >= OUTLINE_FROM_PX;
    if (isWide && this.outlineCount < LARGEST_RUN_LIST) {
      const at = this.outlineCount++ * 3;
      this.outlines[at] = first;
      this.outlines[at + 1] = Math.ceil(x1);
      this.outlines[at + 2] = flags;
    } else {
      this.flags[Math.min(first, this.width - 1)]! |= flags & (MARKED_FLAGS | FLAG.session);
    }
  }
}

/** Write the colours of a line into a row of pixels. */
export function colourLine(line: PixelLine, inks: Inks, into: Uint32Array): void {
  const { slots, strengths, width } = line;
  const colours = inks.slots;
  for (let x = 0; x < width; x++) {
    const strength = strengths[x]!;
    into[x] = strength === 0 ? inks.background : colours[slots[x]! * STRENGTHS + strength]!;
  }
}

function visibleRange(
  table: SpanTable,
  lane: number,
  row: number,
  view: LineView,
): [number, number] {
  const [low, high] = rangeOf(table, lane, row);
  return [firstEndingAfter(table, low, high, (view.t0 - table.originNs) / table.tickNs), high];
}

function tickIn(main: SpanTable, other: SpanTable, index: number): number {
  const ns = other.originNs + (other.start[index] ?? 0) * other.tickNs;
  return (ns - main.originNs) / main.tickNs;
}
