/**
 * Silhouettes of collapsed groups: how many lanes are busy at each pixel, and mostly with what.
 *
 * Spans are added as steps up and down, summed at the end, so the cost is one pass over the spans
 * in view, however many lanes the group has.
 */

import { farLevel, type FarSilhouettes } from "./farsilhouettes";
import { FLAG, MARKED_FLAGS } from "./frame";
import { type Inks, STRENGTHS } from "./inks";
import type { LineView, PixelLine } from "./lod";
import { fill, paintMarks, type Picture, type RowBox } from "./marks";
import { CONTAINER_SLOT, SLOT_COUNT } from "./slots";
import { endOf, firstEndingAfter, rangeOf, type SpanTable } from "./spans";

/** Where a collapsed group is drawn, and which lanes it has. */
export interface SilhouetteBox extends RowBox {
  readonly group: number;
  readonly lanes: readonly number[];
  readonly rowsOf: (lane: number) => number;
}

const MARKS_PX = 4;
/** What runs inside a session tells more than the session itself. */
const CONTAINER_SHARE = 0.01;

export class SilhouettePainter {
  private readonly busy: Float64Array;
  private readonly cover: Float64Array;

  constructor(private readonly width: number) {
    this.busy = new Float64Array(width + 2);
    this.cover = new Float64Array((width + 2) * SLOT_COUNT);
  }

  /** Paint one collapsed group; `line` lends its flags to the marks. */
  paint(
    picture: Picture,
    tables: readonly SpanTable[],
    box: SilhouetteBox,
    view: LineView,
    inks: Inks,
    line: PixelLine,
  ): void {
    this.busy.fill(0);
    this.cover.fill(0);
    line.clear();
    for (const table of tables) {
      for (const lane of box.lanes) {
        this.addLane(table, lane, box.rowsOf(lane), view, line);
      }
    }
    this.paintColumns(picture, box, inks);
    paintMarks(picture, line, { y: box.y, height: Math.min(MARKS_PX, box.height) }, inks);
  }

  /** Paint a collapsed group as the server has seen it. */
  paintFar(
    picture: Picture,
    far: FarSilhouettes,
    box: SilhouetteBox,
    view: LineView,
    inks: Inks,
    line: PixelLine,
  ): void {
    line.clear();
    const level = { share: 0, slot: 0, flags: 0 };
    const pixelNs = (view.t1 - view.t0) / this.width;
    for (let x = 0; x < this.width; x++) {
      const from = view.t0 + x * pixelNs;
      farLevel(far, box.group, from, from + pixelNs, level);
      if (level.share > 0) {
        fillColumn(picture, x, box, level.share, level.slot, inks);
      }
      if ((level.flags & MARKED_FLAGS) !== 0) {
        line.flags[x]! |= level.flags;
        line.hasFlags = true;
      }
    }
    paintMarks(picture, line, { y: box.y, height: Math.min(MARKS_PX, box.height) }, inks);
  }

  private addLane(
    table: SpanTable,
    lane: number,
    rows: number,
    view: LineView,
    line: PixelLine,
  ): void {
    const holds = sessionLanes(table)[lane] === 1;
    for (let row = 0; row < rows; row++) {
      const [low, high] = rangeOf(table, lane, row);
      const tick0 = (view.t0 - table.originNs) / table.tickNs;
      const first = firstEndingAfter(table, low, high, tick0);
      this.addSpans(table, first, high, view, line, { holds, isFirstRow: row === 0 });
    }
  }

  /** A lane is busy while one of its sessions is; without sessions, while its first row is. */
  private addSpans(
    table: SpanTable,
    low: number,
    high: number,
    view: LineView,
    line: PixelLine,
    { holds, isFirstRow }: { holds: boolean; isFirstRow: boolean },
  ): void {
    const { start, flags, slot, weight } = table;
    const perTick = (table.tickNs * this.width) / (view.t1 - view.t0);
    const tick0 = (view.t0 - table.originNs) / table.tickNs;
    const nowTick = (view.now - table.originNs) / table.tickNs;
    for (let index = low; index < high; index++) {
      const x0 = Math.max((start[index]! - tick0) * perTick, 0);
      if (x0 >= this.width) {
        break;
      }
      const x1 = Math.min((endOf(table, index, nowTick) - tick0) * perTick, this.width);
      const share = weight === null ? 1 : weight[index]! / 255;
      const colour = slot[index]!;
      const at = colour * (this.width + 2);
      const counted = colour === CONTAINER_SLOT ? share * CONTAINER_SHARE : share;
      addStretch(this.cover, at, x0, x1, counted);
      if (holds ? (flags[index]! & FLAG.session) !== 0 : isFirstRow) {
        addStretch(this.busy, 0, x0, x1, share);
      }
      if ((flags[index]! & MARKED_FLAGS) !== 0) {
        line.flags[x0 | 0]! |= flags[index]!;
        line.hasFlags = true;
      }
    }
  }

  private paintColumns(picture: Picture, box: SilhouetteBox, inks: Inks): void {
    const levels = new Float64Array(SLOT_COUNT);
    const lanes = Math.max(box.lanes.length, 1);
    let busy = 0;
    for (let x = 0; x < this.width; x++) {
      busy += this.busy[x]!;
      let best = 0;
      for (let slot = 0; slot < SLOT_COUNT; slot++) {
        levels[slot]! += this.cover[slot * (this.width + 2) + x]!;
        best = levels[slot]! > levels[best]! ? slot : best;
      }
      // Sums of steps end a hair beside zero.
      if (busy > 1e-6 && levels[best]! > 1e-6) {
        fillColumn(picture, x, box, busy / lanes, best, inks);
      }
    }
  }
}

function fillColumn(
  picture: Picture,
  x: number,
  box: SilhouetteBox,
  share: number,
  slot: number,
  inks: Inks,
): void {
  const high = Math.min(Math.max(Math.round(share * box.height), 1), box.height);
  const ink = inks.slots[slot * STRENGTHS + STRENGTHS - 1]!;
  fill(picture, x, box.y + box.height - high, 1, high, ink);
}

/** Raise the level between two places; a step within a pixel counts for the rest of it. */
function addStretch(steps: Float64Array, at: number, x0: number, x1: number, by: number): void {
  const first = x0 | 0;
  const last = x1 | 0;
  const begun = first + 1 - x0;
  const ended = last + 1 - x1;
  steps[at + first]! += by * begun;
  steps[at + first + 1]! += by * (1 - begun);
  steps[at + last]! -= by * ended;
  steps[at + last + 1]! -= by * (1 - ended);
}

const lanesWithSessions = new WeakMap<SpanTable, Uint8Array>();

function sessionLanes(table: SpanTable): Uint8Array {
  let lanes = lanesWithSessions.get(table);
  if (lanes === undefined) {
    lanes = new Uint8Array(table.laneFirst.length);
    for (let index = 0; index < table.count; index++) {
      if ((table.flags[index]! & FLAG.session) !== 0) {
        lanes[table.lane[index]!] = 1;
      }
    }
    lanesWithSessions.set(table, lanes);
  }
  return lanes;
}
