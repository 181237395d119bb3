/** Tracks over the lanes, aligned with them: the axis of time, sessions in flight, one metric. */
import { useEffect, useRef } from "preact/hooks";
import { effect } from "../state/signals";
import type { Series } from "../model/answers";
import { count, duration } from "../model/format";
import { farFlight } from "../model/farsilhouettes";
import { inFlight } from "../model/inflight";
import { axisTimes, pixelOf, type TimeWindow } from "../model/scale";
import { asOf } from "../state/selection";
import type { Scene, SceneData } from "./scene";
import { canvasTheme, type CanvasTheme, sizeCanvas } from "./theme";

const AXIS_PX = 20;
const TRACK_PX = 40;
const MARK_EVERY_PX = 110;

interface TrackView {
  readonly context: CanvasRenderingContext2D;
  readonly theme: CanvasTheme;
  readonly window: TimeWindow;
  readonly width: number;
}

export function Tracks({ scene, metric }: { scene: Scene; metric: Series | null }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const height = AXIS_PX + TRACK_PX * (metric ? 2 : 1);
  const data = scene.data.value;
  const isPart = data !== null && !data.isWhole && data.far === null;
  useEffect(() => {
    const element = canvas.current!; // the reference is gone before the effect ends
    return effect(() => {
      paintTracks(element, scene, metric, height);
    });
  }, [scene, metric, height]);
  return (
    <div class="tl-tracks" style={{ height: `${height}px` }}>
      <div class="tl-track-names" aria-hidden="true">
        <span style={{ top: `${AXIS_PX}px` }}>{isPart ? "in flight here" : "in flight"}</span>
        {metric && <span style={{ top: `${AXIS_PX + TRACK_PX}px` }}>{metric.name}</span>}
      </div>
      <canvas
        ref={canvas}
        role="img"
        aria-label="Axis of time and sessions in flight; the lanes below show the same window"
      />
    </div>
  );
}

function paintTracks(
  canvas: HTMLCanvasElement,
  scene: Scene,
  metric: Series | null,
  height: number,
): void {
  const { width } = scene.size.value;
  const window = scene.window.value;
  const data = scene.data.value;
  const cursor = asOf.value;
  void scene.growth.value;
  const theme = canvasTheme();
  if (width === 0) {
    return;
  }
  const ratio = sizeCanvas(canvas, width, height);
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = theme.font;
  const view = { context, theme, window, width };
  paintAxis(view, height);
  if (data !== null) {
    paintArea(view, AXIS_PX, flightIn(scene, data, window, Math.round(width)));
  }
  if (metric) {
    const base = Number(scene.baseNs);
    paintArea(view, AXIS_PX + TRACK_PX, sampled(metric, view, base));
  }
  if (cursor !== null) {
    context.fillStyle = theme.accent;
    context.fillRect(Math.round(pixelOf(window, width, cursor * 1e9)), 0, 1, height);
  }
}

/** How many sessions were in flight at each pixel of a window. */
export function flightIn(
  scene: Scene,
  { far, tables }: SceneData,
  window: TimeWindow,
  pixels: number,
): Float32Array {
  return far ? farFlight(far, window, pixels) : inFlight(tables, window, pixels, scene.now());
}

function paintAxis({ context, theme, window, width }: TrackView, height: number): void {
  context.textBaseline = "middle";
  for (const time of axisTimes(window, width / MARK_EVERY_PX)) {
    const x = Math.round(pixelOf(window, width, time));
    context.fillStyle = theme.line;
    context.fillRect(x, 0, 1, height);
    context.fillStyle = theme.dim;
    const text = time === 0 ? "start" : duration(time);
    if (x + 4 + context.measureText(text).width <= width)
      context.fillText(text, x + 4, AXIS_PX / 2);
  }
}

/** A filled line over the window, its highest value written beside it. */
function paintArea(view: TrackView, top: number, values: Float32Array): void {
  const { context, theme } = view;
  const high = values.reduce((most, value) => Math.max(most, value), 0);
  if (high <= 0) {
    return;
  }
  const room = TRACK_PX - 6;
  context.fillStyle = theme.accent;
  context.globalAlpha = 0.35;
  context.beginPath();
  context.moveTo(0, top + TRACK_PX);
  values.forEach((value, x) => {
    context.lineTo(x, top + TRACK_PX - (Math.max(value, 0) / high) * room);
  });
  context.lineTo(values.length, top + TRACK_PX);
  context.fill();
  context.globalAlpha = 1;
  const text = `max ${count(Math.round(high * 100) / 100)}`;
  const wide = context.measureText(text).width;
  context.fillStyle = theme.background;
  context.fillRect(2, top + 3, wide + 6, 14);
  context.fillStyle = theme.text;
  context.textBaseline = "middle";
  context.fillText(text, 5, top + 10);
}

/** The first line of a series at each pixel. */
function sampled(series: Series, { window, width }: TrackView, base: number): Float32Array {
  const values = new Float32Array(Math.round(width));
  const line = series.lines[0];
  series.positions.forEach((position, index) => {
    const from = pixelOf(window, width, position - base);
    const until = pixelOf(window, width, position - base + (series.width_ns ?? 0));
    const x0 = Math.max(Math.floor(from), 0);
    values.fill(line?.values[index] ?? 0, x0, Math.max(Math.ceil(until), x0 + 1));
  });
  return values;
}
