/**
 * The base layer: all spans in view as one picture, and their names where there is room.
 *
 * For measuring, the canvas carries `data-frames` (pictures painted), `data-paint-ms` (the last
 * one's time), `data-spans` (spans loaded) and `data-whole` (whether those are all); the first
 * picture leaves the performance mark `rollscope-timeline-first`, the first with every span in the
 * page `rollscope-timeline-whole`.
 */

import { pictureLayout } from "../model/lanes";
import type { LineView } from "../model/lod";
import { type PictureLayout, PicturePainter } from "../model/picture";
import { paintLabels } from "./labels";
import type { Scene, SceneData } from "./scene";
import { canvasTheme, sizeCanvas } from "./theme";

export class BaseLayer {
  private painter: PicturePainter | null = null;
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0);
  private frames = 0;
  private readonly marked = new Set<string>();
  private readonly context: CanvasRenderingContext2D;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly scene: Scene,
  ) {
    this.context = canvas.getContext("2d", { alpha: false })!;
  }

  /** Paint what is in view now. Reads signals, so that an effect around it follows them. */
  paint(): void {
    const { scene, canvas } = this;
    const { width, height } = scene.size.value;
    const data = scene.data.value;
    const layout = scene.layout.value;
    const window = scene.window.value;
    const scroll = scene.scroll.value;
    void scene.growth.value;
    const theme = canvasTheme();
    if (data === null || layout === null || width === 0) {
      return;
    }
    const began = performance.now();
    const ratio = sizeCanvas(canvas, width, height);
    const view = { ...window, width: canvas.width, now: scene.now() };
    const strips = pictureLayout(layout, data.header, scroll, height, ratio);
    this.paintPixels(data, strips, view, theme.inks);
    paintLabels(this.context, { data, strips, view, ratio, theme });
    this.note(data, performance.now() - began);
  }

  private paintPixels(
    data: SceneData,
    strips: PictureLayout,
    view: LineView,
    inks: ReturnType<typeof canvasTheme>["inks"],
  ): void {
    const { width, height } = this.canvas;
    if (this.image?.width !== width || this.image.height !== height) {
      this.image = this.context.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    if (this.painter?.width !== width) {
      this.painter = new PicturePainter(width);
    }
    const picture = { pixels: this.pixels, width, height };
    this.painter.paint(picture, data.tables, strips, view, inks, data.far);
    this.context.putImageData(this.image, 0, 0);
  }

  private note(data: SceneData, paintMs: number): void {
    this.frames += 1;
    this.canvas.dataset["frames"] = String(this.frames);
    this.canvas.dataset["paintMs"] = paintMs.toFixed(2);
    const spans = data.tables.reduce((sum, table) => sum + table.count, 0);
    this.canvas.dataset["spans"] = String(spans);
    this.canvas.dataset["whole"] = String(data.isWhole);
    this.markOnce("rollscope-timeline-first");
    if (data.isWhole) {
      this.markOnce("rollscope-timeline-whole");
    }
  }

  private markOnce(name: string): void {
    if (!this.marked.has(name)) {
      this.marked.add(name);
      performance.mark(name);
    }
  }
}
