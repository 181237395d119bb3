/** A plane of time against the logarithm of duration, on which a box can be drawn. */
import { useState } from "preact/hooks";
import { lengthAt, type LogScale, placeOf, tickLabel, ticksOf } from "../model/logscale";
import { readColour } from "../model/palette";
import { axisTimes } from "../model/scale";
import { type Box, Canvas, type Surface } from "./canvas";

const LEFT = 56;
const RIGHT = 8;
const TOP = 6;
const FOOT = 20;
const HEIGHT = 240;

/** Part of the plane, in nanoseconds. */
export interface Region {
  from: number;
  to: number;
  low: number;
  high: number;
}

export interface PlaneProps {
  label: string;
  from: number;
  to: number;
  scale: LogScale;
  /** What is said of the place under the pointer. */
  say: (time: number, length: number) => string;
  paint: (ink: CanvasRenderingContext2D, x: Place, y: Place) => void;
  inputs: readonly unknown[];
  region: Region | null;
  onRegion: (region: Region) => void;
  onPick?: (time: number, length: number) => void;
  /** Said while the pointer is elsewhere. */
  hint?: string | undefined;
}

export type Place = (value: number) => number;

export function Plane(props: PlaneProps) {
  const [drawn, setDrawn] = useState<Box | null>(null);
  const [said, setSaid] = useState("");
  const timeAt = (x: number, width: number): number =>
    props.from + ((x - LEFT) / (width - LEFT - RIGHT)) * (props.to - props.from);
  const lengthOf = (y: number): number =>
    lengthAt(props.scale, 1 - (y - TOP) / (HEIGHT - TOP - FOOT));
  const onBox = (box: Box, isDone: boolean, width: number): void => {
    setDrawn(isDone ? null : box);
    if (isDone) {
      props.onRegion({
        from: timeAt(box.x0, width),
        to: timeAt(box.x1, width),
        low: lengthOf(box.y1),
        high: lengthOf(box.y0),
      });
    }
  };
  return (
    <>
      <Canvas
        label={props.label}
        height={HEIGHT}
        inputs={[...props.inputs, drawn, props.region]}
        draw={(surface) => draw(surface, props, drawn)}
        onHover={(at, width) => setSaid(at ? props.say(timeAt(at.x, width), lengthOf(at.y)) : "")}
        onBox={onBox}
        onPick={(x, y, width) => props.onPick?.(timeAt(x, width), lengthOf(y))}
      />
      <p class="canvas-note dim">
        {said || (props.hint ?? "Drag a box to ask what is different about it.")}
      </p>
    </>
  );
}

function draw({ ink, width, height }: Surface, props: PlaneProps, drawn: Box | null): void {
  const [right, bottom] = [width - RIGHT, height - FOOT];
  const x: Place = (time) =>
    LEFT + ((time - props.from) / Math.max(props.to - props.from, 1)) * (right - LEFT);
  const y: Place = (length) => bottom - placeOf(props.scale, length) * (bottom - TOP);
  ink.textBaseline = "middle";
  ink.textAlign = "right";
  for (const tick of ticksOf(props.scale)) {
    ink.fillStyle = readColour("--line");
    ink.fillRect(LEFT, y(tick), right - LEFT, 1);
    ink.fillStyle = readColour("--text-dim");
    ink.fillText(tickLabel(tick), LEFT - 6, Math.min(Math.max(y(tick), 6), bottom));
  }
  for (const tick of axisTimes({ t0: 0, t1: props.to - props.from }, 6)) {
    const at = x(props.from + tick);
    ink.textAlign = at > right - LEFT / 2 ? "right" : tick === 0 ? "left" : "center";
    ink.fillText(tickLabel(tick), at, bottom + 10);
  }
  ink.textAlign = "left";
  props.paint(ink, x, y);
  const box = drawn ?? (props.region && boxOf(props.region, x, y));
  if (!box) return;
  ink.strokeStyle = readColour("--accent");
  ink.lineWidth = 1.5;
  ink.strokeRect(box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0);
}

function boxOf(region: Region, x: Place, y: Place): Box {
  return { x0: x(region.from), x1: x(region.to), y0: y(region.high), y1: y(region.low) };
}
