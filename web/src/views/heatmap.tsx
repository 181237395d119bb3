/** How many sessions started when and ran how long: a cell is the darker the more there are. */
import type { Durations } from "../model/answers";
import { duration, plural } from "../model/format";
import { logScale } from "../model/logscale";
import { readColour } from "../model/palette";
import { Plane, type Place, type Region } from "./plane";

const RAMP = [0, 1, 2, 3, 4].map((step) => `--heat-${step}`);

function binOf(edges: readonly number[], value: number): number {
  return edges.findIndex((edge, i) => value >= edge && value < (edges[i + 1] ?? -Infinity));
}

export function HeatMapView(props: {
  heat: Durations["heat"];
  region: Region | null;
  onRegion: (region: Region) => void;
}) {
  const { heat } = props;
  const { start_edges_ns: columns, length_edges_ns: rows } = heat;
  const from = columns[0]!;
  const most = Math.max(1, ...heat.counts.flat());
  const say = (time: number, length: number): string => {
    const [column, row] = [binOf(columns, time), binOf(rows, length)];
    const count = heat.counts[row]?.[column] ?? 0;
    if (!count) return "";
    const wrong = heat.flagged[row]?.[column] ?? 0;
    return (
      `${plural(count, "session")} started at ${duration(columns[column]! - from)} and ran ` +
      `${duration(rows[row])} to ${duration(rows[row + 1])}${wrong ? `; ${wrong} went wrong` : ""}`
    );
  };
  return (
    <Plane
      label="Sessions by their start and how long they ran"
      from={from}
      to={columns[columns.length - 1]!}
      scale={logScale([rows[0]!, rows[rows.length - 1]!])}
      say={say}
      paint={(ink, x, y) => paint(ink, x, y, heat, most)}
      inputs={[heat]}
      region={props.region}
      onRegion={props.onRegion}
    />
  );
}

function paint(
  ink: CanvasRenderingContext2D,
  x: Place,
  y: Place,
  heat: Durations["heat"],
  most: number,
): void {
  const { start_edges_ns: columns, length_edges_ns: rows } = heat;
  const ramp = RAMP.map(readColour);
  const wrong = readColour("--bad");
  heat.counts.forEach((line, row) => {
    line.forEach((count, column) => {
      if (!count) return;
      const [left, top] = [x(columns[column]!), y(rows[row + 1]!)];
      const [width, height] = [x(columns[column + 1]!) - left, y(rows[row]!) - top];
      const shade = 1 + Math.round((Math.log(count) / (Math.log(most) || 1)) * 3);
      ink.fillStyle = ramp[Math.min(shade, 4)]!;
      ink.fillRect(left, top, Math.max(width - 0.5, 1), Math.max(height - 0.5, 1));
      if (!heat.flagged[row]?.[column]) return;
      ink.fillStyle = wrong;
      ink.fillRect(left, top, Math.max(Math.min(width, 3), 2), Math.max(Math.min(height, 3), 2));
    });
  });
}
