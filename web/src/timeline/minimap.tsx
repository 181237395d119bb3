/** The whole run in one strip, with the window that is shown; drag it, or drag its edges. */
import { effect } from "../state/signals";
import { useEffect, useRef } from "preact/hooks";
import { FLAG } from "../model/frame";
import { duration } from "../model/format";
import { inFlight } from "../model/inflight";
import { clamp, pixelOf, timeAt } from "../model/scale";
import type { Scene, SceneData } from "./scene";
import { canvasTheme, sizeCanvas } from "./theme";

const HEIGHT_PX = 36;
const EDGE_PX = 8;
const KEY_STEP = 0.1;

export function Minimap({ scene }: { scene: Scene }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const element = canvas.current!; // the reference is gone before the effect ends
    const picture = new MinimapPicture(scene);
    const stop = effect(() => {
      picture.paint(element);
    });
    const release = dragWindow(element, scene);
    return () => {
      stop();
      release();
    };
  }, [scene]);
  const { t0, t1 } = scene.window.value;
  const share = Math.round((clamp(t0, 0, Infinity) / Math.max(scene.whole().t1, 1)) * 100);
  return (
    <div class="tl-minimap">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="slider"
        aria-label="Window in the run"
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={share}
        aria-valuetext={`from ${duration(Math.max(t0, 0))} to ${duration(t1)}`}
        onKeyDown={(event) => {
          if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
            event.preventDefault();
            event.stopPropagation();
            scene.pan(event.key === "ArrowLeft" ? -KEY_STEP : KEY_STEP);
          }
        }}
      />
    </div>
  );
}

/** Paints the strip; keeps the counts of the whole run while only the window moves. */
export class MinimapPicture {
  counts: Float32Array = new Float32Array(0);
  marks = new Uint8Array(0);
  private known: SceneData | null = null;

  constructor(private readonly scene: Scene) {}

  paint(canvas: HTMLCanvasElement): void {
    const { scene } = this;
    const { width } = scene.size.value;
    const window = scene.window.value;
    const data = scene.data.value;
    const theme = canvasTheme();
    const whole = scene.whole();
    if (width === 0 || data === null) {
      return;
    }
    this.learn(data, Math.round(width));
    const ratio = sizeCanvas(canvas, width, HEIGHT_PX);
    const context = canvas.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = theme.raised;
    context.fillRect(0, 0, width, HEIGHT_PX);
    this.paintCounts(context, theme.dim, theme.text);
    const x0 = clamp(pixelOf(whole, width, window.t0), 0, width - 3);
    const x1 = clamp(pixelOf(whole, width, window.t1), x0 + 3, width);
    context.fillStyle = theme.background;
    context.globalAlpha = 0.65;
    context.fillRect(0, 0, x0, HEIGHT_PX);
    context.fillRect(x1, 0, width - x1, HEIGHT_PX);
    context.globalAlpha = 1;
    context.strokeStyle = theme.accent;
    context.lineWidth = 2;
    context.strokeRect(x0 + 1, 1, Math.max(x1 - x0 - 2, 1), HEIGHT_PX - 2);
  }

  /** A tile of a part of the run says nothing about the rest: what is known stays. */
  learn(data: SceneData, width: number): void {
    const whole = this.scene.whole();
    const hasOverview = data.frame.columns.has("mini_mean");
    const covers = Number(BigInt(data.header.t1_ns) - this.scene.baseNs) >= whole.t1 * 0.9;
    const begins = Number(BigInt(data.header.t0_ns) - this.scene.baseNs) <= whole.t1 * 0.02;
    const isFresh = this.known !== data && (data.isWhole || hasOverview || (covers && begins));
    if (!isFresh && this.counts.length === width) {
      return;
    }
    this.known = data;
    if (this.fromOverview(data, width)) {
      return;
    }
    this.counts = inFlight(data.tables, whole, width, this.scene.now());
    this.marks = new Uint8Array(width);
    for (const table of data.tables) {
      const perTick = (table.tickNs * width) / (whole.t1 - whole.t0);
      const shift = (table.originNs / table.tickNs) * perTick;
      for (let index = 0; index < table.count; index++) {
        if ((table.flags[index]! & (FLAG.error | FLAG.stuck | FLAG.lost)) !== 0) {
          const x = Math.floor(table.start[index]! * perTick + shift);
          this.marks[clamp(x, 0, width - 1)] = 1;
        }
      }
    }
  }

  /** A tile brings a picture of the whole run along; false if this one does not. */
  private fromOverview({ frame, isWhole }: SceneData, width: number): boolean {
    const mean = frame.columns.get("mini_mean");
    const flags = frame.columns.get("mini_flags");
    if (isWhole || mean === undefined || flags === undefined) {
      return false;
    }
    this.counts = new Float32Array(width);
    this.marks = new Uint8Array(width);
    for (let x = 0; x < width; x++) {
      const from = Math.floor((x * flags.length) / width);
      for (let role = 0; role * flags.length < mean.length; role++) {
        this.counts[x]! += mean[role * flags.length + from]! / 1000;
      }
      this.marks[x] = flags[from]! & (FLAG.error | FLAG.stuck | FLAG.lost) ? 1 : 0;
    }
    return true;
  }

  private paintCounts(context: CanvasRenderingContext2D, area: string, mark: string): void {
    const high = this.counts.reduce((most, each) => Math.max(most, each), 1);
    context.fillStyle = area;
    this.counts.forEach((each, x) => {
      const tall = (each / high) * (HEIGHT_PX - 8);
      context.fillRect(x, HEIGHT_PX - tall, 1, tall);
    });
    context.fillStyle = mark;
    this.marks.forEach((isMarked, x) => {
      if (isMarked === 1) {
        context.fillRect(x, 0, 1, 5);
      }
    });
  }
}

/** Drag inside the window to move it, at an edge to stretch it, elsewhere to put it there. */
function dragWindow(canvas: HTMLCanvasElement, scene: Scene): () => void {
  const timeOf = (event: PointerEvent): number => {
    const box = canvas.getBoundingClientRect();
    return timeAt(scene.whole(), box.width, event.clientX - box.left);
  };
  let move: ((time: number) => void) | null = null;
  const onDown = (event: PointerEvent): void => {
    canvas.setPointerCapture(event.pointerId);
    const time = timeOf(event);
    const { t0, t1 } = scene.window.peek();
    const whole = scene.whole();
    const grip = (EDGE_PX * (whole.t1 - whole.t0)) / Math.max(canvas.clientWidth, 1);
    const isWide = t1 - t0 > grip * 4;
    if (isWide && Math.abs(time - t0) < grip) {
      move = (to) => scene.move({ t0: Math.min(to, t1 - grip), t1 });
    } else if (isWide && Math.abs(time - t1) < grip) {
      move = (to) => scene.move({ t0, t1: Math.max(to, t0 + grip) });
    } else {
      const isInside = time > t0 && time < t1;
      const shift = isInside ? time - t0 : (t1 - t0) / 2;
      move = (to) => scene.move({ t0: to - shift, t1: to - shift + (t1 - t0) });
      move(time);
    }
  };
  const onMove = (event: PointerEvent): void => move?.(timeOf(event));
  const onUp = (): void => {
    move = null;
  };
  canvas.addEventListener("pointerdown", onDown);
  canvas.addEventListener("pointermove", onMove);
  canvas.addEventListener("pointerup", onUp);
  return () => {
    canvas.removeEventListener("pointerdown", onDown);
    canvas.removeEventListener("pointermove", onMove);
    canvas.removeEventListener("pointerup", onUp);
  };
}
