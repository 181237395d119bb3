/** Sessions of a step as rows, by their end: the emptier the right side, the more slots stood idle. */
import { useMemo, useState } from "preact/hooks";
import type { Staircase } from "../model/answers";
import { duration, plural } from "../model/format";
import { readColour } from "../model/palette";
import { rowsWithin } from "../model/stairs";
import { link, navigate } from "../state/route";
import { Canvas, type Surface } from "./canvas";
import { sessionName } from "./sessionlink";

/** As far as the axis of the chart above takes, so that both show the same times. */
const LEFT = 56;
const RIGHT = 8;
const FOOT = 18;

interface Frame {
  from: number;
  span: number;
  width: number;
}

function xOf(frame: Frame, ns: number): number {
  const share = Math.min(Math.max((ns - frame.from) / frame.span, 0), 1);
  return LEFT + share * (frame.width - LEFT - RIGHT);
}

export function StaircaseView({ stairs: all }: { stairs: Staircase }) {
  const [at, setAt] = useState<number | null>(null);
  const stairs = useMemo(() => ({ ...all, rows: rowsWithin(all) }), [all]);
  const count = stairs.rows.length;
  const elsewhere = all.rows.length - count;
  const height = Math.min(Math.max(count * 3, 90), 320) + FOOT;
  const rowAt = (y: number): number =>
    Math.min(Math.max(Math.floor((y / (height - FOOT)) * count), 0), count - 1);
  const open = (index: number): void => {
    const row = stairs.rows[index];
    if (row) navigate(link("session", row.session_id));
  };
  const onKey = (key: string): boolean => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[key];
    if (step !== undefined) setAt(Math.min(Math.max((at ?? count) + step, 0), count - 1));
    else if (key === "Enter" && at !== null) open(at);
    else return false;
    return true;
  };
  const row = at === null ? undefined : stairs.rows[at];
  const left = elsewhere
    ? `${plural(elsewhere, "session")} ran wholly before the step or after it.`
    : "";
  if (count === 0) return <p class="dim">{left}</p>;
  return (
    <>
      <Canvas
        label={`${count} sessions by their end; arrow keys choose one, Enter opens it`}
        height={height}
        inputs={[stairs, at]}
        draw={(surface) => draw(surface, stairs, at)}
        onHover={(point) => setAt(point && point.y < height - FOOT ? rowAt(point.y) : null)}
        onPick={(_, y) => open(rowAt(y))}
        onKey={onKey}
      />
      <p class="canvas-note dim" role="status">
        {row
          ? `${sessionName(row, row.session_id)} on ${row.pool || "no pool"}: ` +
            `${duration(row.start_ns - stairs.start_ns)} to ${duration(row.end_ns - stairs.start_ns)}` +
            `${row.is_open ? ", still open" : ""}${row.is_holder ? ", held the tail" : ""}` +
            `${row.charge_ns ? `, charged ${duration(row.charge_ns)}` : ""}`
          : `One row for each session, the last to end at the bottom. ${left}`}
      </p>
    </>
  );
}

function draw({ ink, width, height }: Surface, stairs: Staircase, at: number | null): void {
  const frame = {
    from: stairs.start_ns,
    span: Math.max(stairs.end_ns - stairs.start_ns, 1),
    width,
  };
  const bottom = height - FOOT;
  const step = bottom / Math.max(stairs.rows.length, 1);
  const lastStart = stairs.lines.find((one) => one.name === "last start")?.time_ns ?? frame.from;
  const last = stairs.lines.find((one) => one.name === "last")?.time_ns ?? stairs.end_ns;
  const colours = {
    idle: readColour("--bg-hover"),
    bar: readColour("--line-strong"),
    holder: readColour("--name-2"),
    chosen: readColour("--accent"),
  };
  stairs.rows.forEach((row, i) => {
    const [start, end] = [xOf(frame, row.start_ns), xOf(frame, row.end_ns)];
    const idle = Math.max(end, xOf(frame, lastStart));
    ink.fillStyle = colours.idle;
    ink.fillRect(idle, i * step, Math.max(xOf(frame, last) - idle, 0), step);
    ink.fillStyle = i === at ? colours.chosen : row.is_holder ? colours.holder : colours.bar;
    ink.fillRect(
      start,
      i * step,
      Math.max(end - start, 1),
      Math.max(step - (step > 2.5 ? 1 : 0), 0.6),
    );
  });
  drawLines(ink, stairs, frame, bottom);
}

function drawLines(
  ink: CanvasRenderingContext2D,
  stairs: Staircase,
  frame: Frame,
  bottom: number,
): void {
  ink.fillStyle = readColour("--text-dim");
  ink.textBaseline = "top";
  let free = 0;
  for (const line of [...stairs.lines].sort((a, b) => a.time_ns - b.time_ns)) {
    const x = xOf(frame, line.time_ns);
    ink.fillRect(x - 0.5, 0, 1, bottom + 3);
    const wide = ink.measureText(line.name).width;
    const left = Math.min(Math.max(x - wide / 2, free), frame.width - wide);
    if (left < free - 0.1 || left > x + 40) continue;
    ink.fillText(line.name, left, bottom + 5);
    free = left + wide + 6;
  }
}
