/**
 * Mouse and touch on the canvas: hover, select, drag an area, pan, zoom, pinch.
 *
 * Turns events into changes of the scene. The wheel alone is left to the browser, which scrolls
 * the lanes; only with Ctrl or Cmd it zooms.
 */

import { endNs, rowAt, spanAt, type SpanRef, startNs } from "../model/hit";
import { boxesBetween } from "../model/lanes";
import { fitAround, timeAt } from "../model/scale";
import type { Scene } from "./scene";

const CLICK_PX = 4;
const GRACE_PX = 3;
const WHEEL_STEP = 0.0022;

interface Point {
  readonly x: number;
  readonly y: number;
}

type Drag =
  | { readonly kind: "area" | "pan" | "measure"; readonly from: Point; readonly t0: number }
  | { readonly kind: "pinch" };

export class Gestures {
  private drag: Drag | null = null;
  private readonly fingers = new Map<number, Point>();
  private hasMoved = false;

  constructor(
    private readonly surface: HTMLElement,
    private readonly scene: Scene,
  ) {}

  /** Listen until the returned function is called. */
  attach(): () => void {
    const listeners: [string, (event: never) => void, AddEventListenerOptions?][] = [
      ["pointerdown", this.onDown],
      ["pointermove", this.onMove],
      ["pointerup", this.onUp],
      ["pointercancel", this.onUp],
      ["pointerleave", this.onLeave],
      ["dblclick", this.onDouble],
      ["wheel", this.onWheel, { passive: false }],
    ];
    for (const [name, listener, options] of listeners) {
      this.surface.addEventListener(name, listener as EventListener, options);
    }
    return () => {
      for (const [name, listener] of listeners) {
        this.surface.removeEventListener(name, listener as EventListener);
      }
    };
  }

  private readonly onDown = (event: PointerEvent): void => {
    if (event.button !== 0) {
      return;
    }
    const from = this.pointOf(event);
    this.fingers.set(event.pointerId, from);
    this.hasMoved = false;
    if (this.fingers.size === 2) {
      this.drag = { kind: "pinch" };
      return;
    }
    const isTouch = event.pointerType === "touch";
    const kind = this.scene.isMeasuring.peek()
      ? "measure"
      : isTouch || event.shiftKey
        ? "pan"
        : "area";
    this.drag = { kind, from, t0: this.timeOf(from) };
  };

  private readonly onMove = (event: PointerEvent): void => {
    const at = this.pointOf(event);
    const before = this.fingers.get(event.pointerId);
    if (this.drag === null || before === undefined) {
      this.scene.hovered.value = this.spanUnder(at);
      return;
    }
    if (this.drag.kind === "pinch") {
      this.pinch(event.pointerId, at);
      return;
    }
    const { from } = this.drag;
    if (!this.hasMoved && Math.hypot(at.x - from.x, at.y - from.y) >= CLICK_PX) {
      this.hasMoved = true;
      this.surface.setPointerCapture(event.pointerId);
    }
    if (this.hasMoved) {
      this.dragTo(this.drag, before, at);
      this.fingers.set(event.pointerId, at);
    }
  };

  private readonly onUp = (event: PointerEvent): void => {
    const drag = this.drag;
    this.fingers.delete(event.pointerId);
    if (drag?.kind === "pinch") {
      this.drag = this.fingers.size > 0 ? drag : null;
      return;
    }
    this.drag = null;
    if (drag === null || event.type === "pointercancel") {
      return;
    }
    if (!this.hasMoved) {
      this.click(this.pointOf(event));
    } else if (drag.kind === "area" && this.scene.area.peek()) {
      this.scene.area.value = { ...this.scene.area.peek()!, isDone: true };
    } else if (drag.kind === "measure") {
      this.scene.isMeasuring.value = false;
    }
  };

  private readonly onLeave = (): void => {
    this.scene.hovered.value = null;
  };

  private readonly onDouble = (event: MouseEvent): void => {
    const span = this.spanUnder(this.pointOf(event));
    const whole = this.scene.whole();
    if (span) {
      this.scene.move(fitAround(startNs(span), endNs(span, this.scene.now()), whole));
    } else {
      this.scene.reset();
    }
  };

  private readonly onWheel = (event: WheelEvent): void => {
    const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const lines = event.deltaMode === 1 ? 16 : 1;
      const factor = Math.exp(-event.deltaY * lines * WHEEL_STEP);
      this.scene.zoom(factor, this.timeOf(this.pointOf(event)));
    } else if (isSideways || event.shiftKey) {
      event.preventDefault();
      const by = isSideways ? event.deltaX : event.deltaY;
      this.scene.pan(by / Math.max(this.scene.size.peek().width, 1));
    }
  };

  private dragTo(drag: Exclude<Drag, { kind: "pinch" }>, before: Point, at: Point): void {
    const { scene } = this;
    if (drag.kind === "pan") {
      scene.pan((before.x - at.x) / Math.max(scene.size.peek().width, 1));
      return;
    }
    const t1 = this.timeOf(at);
    if (drag.kind === "measure") {
      scene.measured.value = { t0: drag.t0, t1 };
      return;
    }
    scene.hovered.value = null;
    const [low, high] = [Math.min(drag.t0, t1), Math.max(drag.t0, t1)];
    const lanes = this.lanesBetween(Math.min(drag.from.y, at.y), Math.max(drag.from.y, at.y));
    scene.area.value = { t0: low, t1: high, lanes, isDone: false };
  }

  private pinch(id: number, at: Point): void {
    const other = [...this.fingers].find(([finger]) => finger !== id)?.[1];
    const before = this.fingers.get(id)!;
    this.fingers.set(id, at);
    if (other === undefined) {
      return;
    }
    const gap = Math.max(Math.abs(before.x - other.x), 10);
    const middle = (before.x + other.x) / 2;
    const time = this.timeOf({ x: middle, y: at.y });
    this.scene.zoom(Math.max(Math.abs(at.x - other.x), 10) / gap, time);
    this.scene.pan((before.x - at.x) / 2 / Math.max(this.scene.size.peek().width, 1));
  }

  private click(at: Point): void {
    this.scene.area.value = null;
    this.scene.measured.value = null;
    this.scene.selected.value = this.spanUnder(at);
  }

  private spanUnder(at: Point): SpanRef | null {
    const { scene } = this;
    const layout = scene.layout.peek();
    const data = scene.data.peek();
    const row = layout && rowAt(layout, at.y, scene.scroll.peek());
    if (!row || !data) {
      return null;
    }
    const { t0, t1 } = scene.window.peek();
    const grace = (GRACE_PX * (t1 - t0)) / Math.max(scene.size.peek().width, 1);
    return spanAt(data.tables, row, this.timeOf(at), grace, scene.now());
  }

  private lanesBetween(top: number, bottom: number): number[] {
    const layout = this.scene.layout.peek();
    if (layout === null) {
      return [];
    }
    const shift = this.scene.scroll.peek() - layout.pinnedHeight;
    const pinned = boxesBetween(layout.pinned, top, Math.min(bottom, layout.pinnedHeight));
    const from = Math.max(top, layout.pinnedHeight) + shift;
    const scrolled = boxesBetween(layout.lanes, from, Math.max(bottom + shift, from + 1));
    return [...pinned, ...scrolled].map((box) => box.lane);
  }

  private timeOf(at: Point): number {
    return timeAt(this.scene.window.peek(), this.scene.size.peek().width, at.x);
  }

  private pointOf(event: MouseEvent): Point {
    const box = this.surface.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }
}
