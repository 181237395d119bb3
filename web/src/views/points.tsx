/** Sessions one by one: when they started or ended, how long they ran, what became of them. */
import type { Scatter } from "../model/answers";
import { duration } from "../model/format";
import { logScale } from "../model/logscale";
import { readColour } from "../model/palette";
import { link, navigate } from "../state/route";
import { Plane, type Place, type Region } from "./plane";

type Drawn = Pick<Scatter, "points" | "lines">;

/** By outcome; what went wrong is ringed as well. */
const COLOURS: Readonly<Record<string, string>> = {
  accepted: "--role-generate",
  open: "--role-env",
  rejected: "--role-train",
  dropped: "--role-train",
  cancelled: "--role-train",
};

function colourOf(outcome: string): string {
  return COLOURS[outcome] ?? (outcome === "none" ? "--role-other" : "--bad");
}

export function PointsView(props: {
  durations: Drawn;
  /** Which time they stand at. */
  by?: "start_ns" | "end_ns";
  hint?: string;
  region: Region | null;
  onRegion: (region: Region) => void;
}) {
  const { points, lines } = props.durations;
  const times = points[props.by ?? "start_ns"];
  const from = Math.min(...times);
  const to = Math.max(...times, from + 1);
  const scale = logScale(points.ran_ns);
  const nearest = (time: number, length: number): number => {
    let [best, least] = [-1, 0.03];
    const high = Math.log(scale.high / scale.low);
    points.ran_ns.forEach((ran, i) => {
      const dx = (times[i]! - time) / (to - from);
      const dy = Math.log(Math.max(ran, 1) / length) / high;
      const away = Math.hypot(dx, dy);
      if (away < least) [best, least] = [i, away];
    });
    return best;
  };
  const say = (time: number, length: number): string => {
    const i = nearest(time, length);
    if (i < 0) return "";
    return `${points.sessions[i]}: ran ${duration(points.ran_ns[i])}, ${points.outcome[i]}`;
  };
  return (
    <Plane
      label={`Sessions as points by their ${props.by === "end_ns" ? "end" : "start"} and how long they ran`}
      from={from}
      to={to}
      scale={scale}
      say={say}
      paint={(ink, x, y) => paint(ink, x, y, times, { points, lines })}
      hint={props.hint}
      inputs={[props.durations]}
      region={props.region}
      onRegion={props.onRegion}
      onPick={(time, length) => {
        const id = points.sessions[nearest(time, length)];
        if (id) navigate(link("session", id));
      }}
    />
  );
}

function paint(
  ink: CanvasRenderingContext2D,
  x: Place,
  y: Place,
  times: readonly number[],
  { points, lines }: Drawn,
): void {
  const inks = new Map([...new Set(points.outcome)].map((one) => [one, readColour(colourOf(one))]));
  ink.strokeStyle = readColour("--bad");
  points.ran_ns.forEach((ran, i) => {
    const [left, top] = [x(times[i]!), y(ran)];
    ink.fillStyle = inks.get(points.outcome[i]!)!;
    ink.fillRect(left - 1.5, top - 1.5, 3, 3);
    if (points.is_flagged[i]) ink.strokeRect(left - 3, top - 3, 6, 6);
  });
  ink.fillStyle = readColour("--text-dim");
  ink.strokeStyle = readColour("--bg");
  ink.lineWidth = 4;
  for (const line of lines) {
    const [left, top] = [x(Math.min(...times)), y(line.ran_ns)];
    const name = `p${line.percent}`;
    ink.fillRect(left, top, x(Math.max(...times)) - left, 1);
    // A rim, so that it can be read among points.
    ink.strokeText(name, left + 2, top - 6);
    ink.fillText(name, left + 2, top - 6);
  }
  ink.lineWidth = 1;
}

/** What the colours mean, of the outcomes that there are. */
export function outcomeColours(outcomes: readonly string[]): { label: string; colour: string }[] {
  return [...new Set(outcomes)].sort().map((label) => ({ label, colour: colourOf(label) }));
}
