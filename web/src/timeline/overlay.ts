/**
 * The overlay: hover, selection, cursor, drawn areas, measuring, the critical path.
 *
 * Mouse moves redraw only this layer, never the spans under it.
 */

import { duration } from "../model/format";
import { endNs, type SpanRef, startNs } from "../model/hit";
import type { LaneLayout } from "../model/lanes";
import { pixelOf, type TimeWindow } from "../model/scale";
import { asOf } from "../state/selection";
import type { PathSegment } from "./path";
import type { Area, Scene } from "./scene";
import { canvasTheme, type CanvasTheme, sizeCanvas } from "./theme";

interface OverlayView {
  readonly context: CanvasRenderingContext2D;
  readonly theme: CanvasTheme;
  readonly window: TimeWindow;
  readonly width: number;
  readonly height: number;
  readonly layout: LaneLayout;
  readonly scroll: number;
}

/** Paint the overlay anew. Reads signals, so that an effect around it follows them. */
export function paintOverlay(
  canvas: HTMLCanvasElement,
  scene: Scene,
  path: readonly PathSegment[],
): void {
  const { width, height } = scene.size.value;
  const layout = scene.layout.value;
  const window = scene.window.value;
  const scroll = scene.scroll.value;
  const theme = canvasTheme();
  const cursor = asOf.value;
  const [hovered, selected] = [scene.hovered.value, scene.selected.value];
  const [area, measured] = [scene.area.value, scene.measured.value];
  if (layout === null || width === 0) {
    return;
  }
  const ratio = sizeCanvas(canvas, width, height);
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = theme.font;
  const view = { context, theme, window, width, height, layout, scroll };
  drawPath(view, path);
  outlineSpan(view, hovered, scene, theme.text, 1);
  outlineSpan(view, selected, scene, theme.accent, 2);
  drawArea(view, area);
  drawMeasure(view, measured);
  drawCursor(view, cursor);
}

/** Give the top of a lane on the canvas; null if it is not shown. */
export function topOfLane(layout: LaneLayout, lane: number, scroll: number): number | null {
  const pinned = layout.pinned.find((box) => box.lane === lane);
  if (pinned) {
    return pinned.y;
  }
  const box = laneIndex(layout).get(lane);
  return box === undefined ? null : box - scroll + layout.pinnedHeight;
}

const indexes = new WeakMap<LaneLayout, Map<number, number>>();

function laneIndex(layout: LaneLayout): Map<number, number> {
  let index = indexes.get(layout);
  if (index === undefined) {
    index = new Map(layout.lanes.map((box) => [box.lane, box.y]));
    indexes.set(layout, index);
  }
  return index;
}

function outlineSpan(
  view: OverlayView,
  span: SpanRef | null,
  scene: Scene,
  colour: string,
  thick: number,
): void {
  if (span === null) {
    return;
  }
  const top = topOfLane(view.layout, span.table.lane[span.index]!, view.scroll);
  if (top === null) {
    return;
  }
  const x0 = clipped(view, startNs(span));
  const x1 = clipped(view, endNs(span, scene.now()));
  const y = top + span.table.row[span.index]! * view.layout.rowHeight;
  view.context.strokeStyle = colour;
  view.context.lineWidth = thick;
  view.context.strokeRect(x0 - 0.5, y - 0.5, Math.max(x1 - x0, 2) + 1, view.layout.rowHeight);
}

function drawArea(view: OverlayView, area: Area | null): void {
  if (area === null) {
    return;
  }
  const { context, theme, layout } = view;
  const tops = area.lanes.flatMap((lane) => topOfLane(layout, lane, view.scroll) ?? []);
  if (tops.length === 0) {
    return;
  }
  const last = area.lanes[area.lanes.length - 1]!;
  const lastBox = [...layout.lanes, ...layout.pinned].find((box) => box.lane === last);
  const y0 = Math.min(...tops);
  const y1 = Math.max(...tops) + (lastBox?.height ?? layout.rowHeight);
  const x0 = clipped(view, area.t0);
  const x1 = clipped(view, area.t1);
  context.fillStyle = theme.accent;
  context.globalAlpha = 0.14;
  context.fillRect(x0, y0, x1 - x0, y1 - y0);
  context.globalAlpha = 1;
  context.strokeStyle = theme.accent;
  context.lineWidth = 1;
  context.strokeRect(x0 + 0.5, y0 + 0.5, x1 - x0, y1 - y0);
  drawTag(view, duration(area.t1 - area.t0), (x0 + x1) / 2, Math.max(y0, 2));
}

function drawMeasure(view: OverlayView, measured: TimeWindow | null): void {
  if (measured === null) {
    return;
  }
  const { context, theme, height } = view;
  const x0 = clipped(view, Math.min(measured.t0, measured.t1));
  const x1 = clipped(view, Math.max(measured.t0, measured.t1));
  context.strokeStyle = theme.text;
  context.lineWidth = 1;
  context.setLineDash([3, 3]);
  for (const x of [x0, x1]) {
    line(context, Math.round(x) + 0.5, 0, Math.round(x) + 0.5, height);
  }
  context.setLineDash([]);
  line(context, x0, 12.5, x1, 12.5);
  drawTag(view, duration(Math.abs(measured.t1 - measured.t0)), (x0 + x1) / 2, 4);
}

function drawCursor(view: OverlayView, seconds: number | null): void {
  if (seconds === null) {
    return;
  }
  const x = Math.round(pixelOf(view.window, view.width, seconds * 1e9)) + 0.5;
  view.context.strokeStyle = view.theme.accent;
  view.context.lineWidth = 1;
  line(view.context, x, 0, x, view.height);
}

/** The critical path: its spans underlined, joined where it leads from one lane to another. */
function drawPath(view: OverlayView, path: readonly PathSegment[]): void {
  const { context, theme, layout } = view;
  let before: { x: number; y: number } | null = null;
  context.strokeStyle = theme.text;
  for (const segment of path) {
    const top = segment.lane === null ? null : topOfLane(layout, segment.lane, view.scroll);
    if (top === null || segment.t1 < view.window.t0 || segment.t0 > view.window.t1) {
      before = null;
      continue;
    }
    const y = top + layout.rowHeight - 1;
    const x0 = clipped(view, segment.t0);
    const x1 = clipped(view, segment.t1);
    context.lineWidth = 2.5;
    line(context, x0, y, Math.max(x1, x0 + 1), y);
    if (before !== null && before.y !== y) {
      context.lineWidth = 1;
      context.setLineDash(segment.isInferred ? [4, 3] : []);
      line(context, before.x, before.y, x0, y);
      arrowHead(context, x0, y, y > before.y);
      context.setLineDash([]);
    }
    before = { x: x1, y };
  }
}

function arrowHead(context: CanvasRenderingContext2D, x: number, y: number, isDown: boolean): void {
  const back = isDown ? -5 : 5;
  line(context, x - 3, y + back, x, y);
  line(context, x + 3, y + back, x, y);
}

function drawTag(view: OverlayView, text: string, x: number, y: number): void {
  const { context, theme } = view;
  const width = context.measureText(text).width + 8;
  const left = Math.min(Math.max(x - width / 2, 0), view.width - width);
  context.fillStyle = theme.text;
  context.fillRect(left, y, width, 16);
  context.fillStyle = theme.background;
  context.textBaseline = "middle";
  context.fillText(text, left + 4, y + 8.5);
}

/** A pixel near the canvas: far ones cost time, and lines lose precision. */
function clipped(view: OverlayView, time: number): number {
  return Math.min(Math.max(pixelOf(view.window, view.width, time), -4), view.width + 4);
}

function line(
  context: CanvasRenderingContext2D,
  x0: number,
  y0: number,
  x1: number,
  y1: number,
): void {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}
