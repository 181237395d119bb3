/** A canvas that is sharp, as wide as its place, and drawn anew when data, size or theme change. */
import { useEffect, useMemo, useRef } from "preact/hooks";
import { readColour } from "../model/palette";
import { shownTheme } from "../state/theme";

export interface Surface {
  ink: CanvasRenderingContext2D;
  width: number;
  height: number;
}

export interface Pointing {
  /** The pointer moves; null when it leaves. */
  onHover?: (at: { x: number; y: number } | null, width: number) => void;
  onPick?: (x: number, y: number, width: number) => void;
  /** A box is drawn, and done when the button is let go. */
  onBox?: (box: Box, isDone: boolean, width: number) => void;
  onKey?: (key: string) => boolean;
}

export interface Box {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}

const MOST_PIXELS = 2;
const LEAST_BOX = 4;

/** @param inputs what the drawing depends on, as for an effect */
export function Canvas(
  props: Pointing & {
    label: string;
    height: number;
    draw: (surface: Surface) => void;
    inputs: readonly unknown[];
  },
) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const theme = shownTheme.value;
  const heard = useMemo(() => listeners(latest), []);
  useEffect(() => {
    const element = canvas.current!;
    const observer = new ResizeObserver(() => paint(element, latest.current));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    paint(canvas.current!, props);
  }, [...props.inputs, props.height, theme]);
  return (
    <canvas
      ref={canvas}
      class="canvas"
      role={props.onKey ? "application" : "img"}
      aria-label={props.label}
      tabIndex={props.onKey ? 0 : undefined}
      style={{ height: `${props.height}px` }}
      {...heard}
    />
  );
}

function paint(
  element: HTMLCanvasElement,
  props: { height: number; draw: (surface: Surface) => void },
): void {
  const width = element.clientWidth;
  const scale = Math.min(devicePixelRatio || 1, MOST_PIXELS);
  const ink = element.getContext("2d");
  if (!width || !ink) return;
  element.width = Math.round(width * scale);
  element.height = Math.round(props.height * scale);
  ink.setTransform(scale, 0, 0, scale, 0, 0);
  ink.font = "11px system-ui, sans-serif";
  ink.fillStyle = readColour("--text-dim");
  props.draw({ ink, width, height: props.height });
}

function listeners(latest: { current: Pointing }) {
  let from: { x: number; y: number } | null = null;
  let isBox = false;
  const place = (event: PointerEvent): [{ x: number; y: number }, number] => {
    const edges = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return [{ x: event.clientX - edges.left, y: event.clientY - edges.top }, edges.width];
  };
  const boxTo = (at: { x: number; y: number }): Box => ({
    x0: Math.min(from!.x, at.x),
    y0: Math.min(from!.y, at.y),
    x1: Math.max(from!.x, at.x),
    y1: Math.max(from!.y, at.y),
  });
  return {
    onPointerDown: (event: PointerEvent) => {
      if (!latest.current.onBox || event.button !== 0) return;
      [from] = place(event);
      (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    },
    onPointerMove: (event: PointerEvent) => {
      const [at, width] = place(event);
      if (from) {
        const box = boxTo(at);
        isBox ||= box.x1 - box.x0 >= LEAST_BOX || box.y1 - box.y0 >= LEAST_BOX;
        if (isBox) latest.current.onBox?.(box, false, width);
      } else {
        latest.current.onHover?.(at, width);
      }
    },
    onPointerUp: (event: PointerEvent) => {
      const [at, width] = place(event);
      if (from && isBox) latest.current.onBox?.(boxTo(at), true, width);
      else latest.current.onPick?.(at.x, at.y, width);
      from = null;
      isBox = false;
    },
    onPointerCancel: () => {
      from = null;
      isBox = false;
    },
    onPointerLeave: () => {
      if (!from) latest.current.onHover?.(null, 0);
    },
    onKeyDown: (event: KeyboardEvent) => {
      if (latest.current.onKey?.(event.key)) event.preventDefault();
    },
  };
}
