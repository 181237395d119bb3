/** Line, area and bar charts on a canvas, and the same numbers as a table. */
import { useState } from "preact/hooks";
import { type Box, Canvas } from "./canvas";
import { indexAt, layout, paint } from "./plot";
import { visible } from "../model/format";
import { layerAt, type Series } from "./stack";
import { TableButton } from "./tablebutton";

export type { Series } from "./stack";

export interface Band {
  from: number;
  to: number;
  label: string;
}

export interface ChartProps {
  label: string;
  /** Horizontal positions, rising. */
  xs: readonly number[];
  series: readonly Series[];
  kind?: "line" | "area" | "stack" | "points" | "bars";
  height?: number;
  xTitle?: string;
  formatX?: (x: number) => string;
  formatY?: (y: number) => string;
  bands?: readonly Band[];
  /** A vertical line, such as the time all panels look at. */
  cursor?: number | null;
  onPick?: (index: number, series: number) => void;
  onRange?: (from: number, to: number) => void;
}

export function Chart(props: ChartProps) {
  const [isTable, setTable] = useState(false);
  return (
    <figure class="chart">
      {isTable ? <ChartTable {...props} /> : <Plot {...props} />}
      <figcaption class="row">
        <Legend series={props.series} />
        <TableButton label={props.label} isTable={isTable} onChange={setTable} />
      </figcaption>
    </figure>
  );
}

export function Legend({ series }: { series: readonly { label: string; colour: string }[] }) {
  return (
    <ul class="legend row">
      {series.map((one) => (
        <li key={one.label}>
          <i class={`swatch ${one.colour.slice(2)}`} style={{ background: `var(${one.colour})` }} />{" "}
          {visible(one.label)}
        </li>
      ))}
    </ul>
  );
}

const TABLE_ROWS = 60;

function ChartTable({ label, xs, series, xTitle, formatX = String, formatY = String }: ChartProps) {
  const step = Math.max(1, Math.ceil(xs.length / TABLE_ROWS));
  const shown = xs.map((_, i) => i).filter((i) => i % step === 0);
  return (
    <div class="table-scroll">
      <table class="table" aria-label={label}>
        <thead>
          <tr>
            <th scope="col">{xTitle ?? "at"}</th>
            {series.map((one) => (
              <th scope="col" class="right" key={one.label}>
                {visible(one.label)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((i) => (
            <tr key={i}>
              <th scope="row">{formatX(xs[i]!)}</th>
              {series.map((one) => (
                <td class="right" key={one.label}>
                  {say(one, i, formatY)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The drawing; what lies under the pointer is said below it. */
function Plot(props: ChartProps) {
  const { xs, series, formatX = String, formatY = String, onRange, onPick } = props;
  const height = props.height ?? 160;
  const [at, setAt] = useState<number | null>(null);
  const [drawn, setDrawn] = useState<[number, number] | null>(null);
  const said =
    at === null || xs[at] === undefined
      ? ""
      : `${formatX(xs[at])}: ${series.map((one) => `${visible(one.label)} ${say(one, at, formatY)}`).join(", ")}`;
  return (
    <>
      <Canvas
        label={props.label}
        height={height}
        inputs={[xs, series, props.kind, props.bands, props.cursor, at, drawn]}
        draw={(surface) => paint(surface, props, at, drawn)}
        onHover={(place, width) =>
          setAt(place ? indexAt(xs, layout(props, width, height).valueAtX(place.x)) : null)
        }
        {...(onPick && {
          onPick: (x: number, y: number, width: number) => {
            const place = layout(props, width, height);
            const index = indexAt(xs, place.valueAtX(x));
            if (index === null) return;
            onPick(index, props.kind === "stack" ? layerAt(series, index, place.valueAtY(y)) : 0);
          },
        })}
        {...(onRange && {
          onBox: (box: Box, isDone: boolean, width: number) => {
            setDrawn(isDone ? null : [box.x0, box.x1]);
            if (!isDone) return;
            const place = layout(props, width, height);
            onRange(place.valueAtX(box.x0), place.valueAtX(box.x1));
          },
        })}
      />
      <p class="canvas-note dim">{said}</p>
    </>
  );
}

function say({ values, lows, highs }: Series, i: number, format: (y: number) => string): string {
  const value = values[i] ?? null;
  const [low, high] = [lows?.[i] ?? value, highs?.[i] ?? value];
  if (value === null) return "–";
  const text = format(value) || value.toPrecision(3);
  return low === high ? text : `${text} (${format(low!)} to ${format(high!)})`;
}
