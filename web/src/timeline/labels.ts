/** Names on spans that are wide enough to carry them. */

import { FLAG } from "../model/frame";
import { duration, visible } from "../model/format";
import type { LineView } from "../model/lod";
import type { PictureLayout, Strip } from "../model/picture";
import { WAITING_SLOT } from "../model/slots";
import { endOf, firstEndingAfter, rangeOf, type SpanTable } from "../model/spans";
import type { SceneData } from "./scene";
import type { CanvasTheme } from "./theme";

const LEAST_WIDTH_PX = 40;
const LEAST_HEIGHT_PX = 11;
const MOST_LABELS = 400;
const MOST_SPANS_IN_ROW = 3000;
const LONGEST_NAME = 60;

interface LabelRun {
  readonly data: SceneData;
  readonly strips: PictureLayout;
  readonly view: LineView;
  readonly ratio: number;
  readonly theme: CanvasTheme;
}

const widths = new Map<string, number>();

/** Write the names of wide spans, in their contrasting colour. */
export function paintLabels(context: CanvasRenderingContext2D, run: LabelRun): void {
  const { strips, ratio, theme, data } = run;
  context.save();
  context.scale(ratio, ratio);
  context.font = theme.font;
  context.textBaseline = "middle";
  let left = MOST_LABELS;
  for (const strip of strips.strips) {
    if (strip.height / ratio >= LEAST_HEIGHT_PX && left > 0) {
      for (const table of data.tables) {
        left -= labelRow(context, run, table, strip);
      }
    }
  }
  context.restore();
}

function labelRow(
  context: CanvasRenderingContext2D,
  run: LabelRun,
  table: SpanTable,
  strip: Strip,
): number {
  const { view, ratio } = run;
  const scale = view.width / ratio / (view.t1 - view.t0);
  const tick0 = (view.t0 - table.originNs) / table.tickNs;
  const tick1 = (view.t1 - table.originNs) / table.tickNs;
  const nowTick = (view.now - table.originNs) / table.tickNs;
  const [low, high] = rangeOf(table, strip.lane, strip.row);
  const first = firstEndingAfter(table, low, high, tick0);
  const last = Math.min(high, first + MOST_SPANS_IN_ROW);
  let written = 0;
  for (let index = first; index < last && table.start[index]! < tick1; index++) {
    const from = Math.max(table.start[index]!, tick0);
    const until = Math.min(endOf(table, index, nowTick), tick1);
    const width = (until - from) * table.tickNs * scale;
    if (width >= LEAST_WIDTH_PX && (table.tally?.[index] ?? 1) === 1) {
      const x = (from - tick0) * table.tickNs * scale;
      const height = strip.height / ratio;
      const y = strip.y / ratio + height / 2;
      writeLabel(context, run, table, index, { x, y, width, height });
      written += 1;
    }
  }
  return written;
}

function writeLabel(
  context: CanvasRenderingContext2D,
  { data, theme, view }: LabelRun,
  table: SpanTable,
  index: number,
  at: { x: number; y: number; width: number; height: number },
): void {
  const sign = table.flags[index]! & FLAG.error ? "⚠ " : "";
  const name =
    sign + visible((data.header.names[table.name[index]!] ?? "?").slice(0, LONGEST_NAME));
  const nowTick = (view.now - table.originNs) / table.tickNs;
  const length = (endOf(table, index, nowTick) - table.start[index]!) * table.tickNs;
  const text = fitText(context, name, duration(length), at.width - 8);
  const slot = table.slot[index]!;
  // Neighbours of one colour would read as one span.
  context.fillStyle = theme.background;
  context.fillRect(at.x, at.y - at.height / 2, 1, at.height);
  if (slot === WAITING_SLOT) {
    context.fillStyle = theme.background;
    context.fillRect(at.x + 2, at.y - 6, widthOf(context, text) + 4, 12);
  }
  context.fillStyle = slot === WAITING_SLOT ? theme.text : theme.onSlots[slot]!;
  context.fillText(text, at.x + 4, at.y + 0.5);
}

/** Name and duration if both fit, else the name, else as much of it as there is room for. */
function fitText(
  context: CanvasRenderingContext2D,
  name: string,
  length: string,
  room: number,
): string {
  const both = `${name}  ${length}`;
  const width = widthOf(context, name);
  if (width + 8 + length.length * 6.5 <= room) {
    return both;
  }
  if (width <= room) {
    return name;
  }
  return `${name.slice(0, Math.max(Math.floor((name.length * room) / width) - 1, 1))}…`;
}

function widthOf(context: CanvasRenderingContext2D, text: string): number {
  let width = widths.get(text);
  if (width === undefined) {
    width = context.measureText(text).width;
    if (widths.size > 5000) {
      widths.clear();
    }
    widths.set(text, width);
  }
  return width;
}
