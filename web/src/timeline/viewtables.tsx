/** What the timeline draws, as tables: spans in view, sessions in flight in view and in the run. */
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Series } from "../model/answers";
import { duration, visible } from "../model/format";
import type { TimeWindow } from "../model/scale";
import { numberCell, textCell } from "../views/cells";
import { type Column, Table } from "../views/table";
import { MinimapPicture } from "./minimap";
import type { Scene } from "./scene";
import { SpanTable } from "./spantable";
import { flightIn } from "./tracks";

const ROWS = 20;
/** Counts are made this much finer than rows, which are their means. */
const FINER = 50;
const PIXELS = ROWS * FINER;

interface Stretch {
  from: number;
  to: number;
  flight: number;
  isMarked: boolean;
}

export function ViewTables({ scene, metric }: { scene: Scene; metric: Series | null }) {
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    box.current?.focus({ preventScroll: true });
    box.current?.scrollIntoView();
  }, []);
  return (
    <section class="tl-tables" ref={box} tabIndex={-1} aria-label="What is in view, as tables">
      <SpanTable scene={scene} />
      <FlightTables scene={scene} metric={metric} />
    </section>
  );
}

/** The tracks and the strip of the whole run. */
function FlightTables({ scene, metric }: { scene: Scene; metric: Series | null }) {
  const data = scene.data.value;
  const window = scene.window.value;
  const strip = useMemo(() => new MinimapPicture(scene), [scene]);
  if (!data) return null;
  strip.learn(data, PIXELS);
  const base = Number(scene.baseNs);
  return (
    <>
      <FlightTable
        label="In flight in view"
        rows={stretches(window, flightIn(scene, data, window, PIXELS))}
        more={
          metric && [
            numberCell(visible(metric.name), (row) => lastIn(metric, base, row), "the last value"),
          ]
        }
      />
      <FlightTable
        label="In flight in the run"
        rows={stretches(scene.whole(), strip.counts, strip.marks)}
        more={[
          textCell(
            "Went wrong",
            ({ isMarked }) => (isMarked ? "something" : ""),
            undefined,
            "an error, something stuck or lost began in it",
          ),
        ]}
      />
    </>
  );
}

function FlightTable(props: {
  label: string;
  rows: readonly Stretch[];
  more: readonly Column<Stretch>[] | null;
}) {
  const columns: Column<Stretch>[] = [
    textCell(
      "From",
      ({ from }) => from,
      ({ from }) => duration(from),
    ),
    numberCell("In flight", ({ flight }) => flight, "sessions, on average until the next row"),
    ...(props.more ?? []),
  ];
  return (
    <>
      <h2>{props.label}</h2>
      <Table
        label={props.label}
        columns={columns}
        rows={props.rows}
        rowKey={({ from }) => String(from)}
      />
    </>
  );
}

function stretches({ t0, t1 }: TimeWindow, counts: Float32Array, marks?: Uint8Array): Stretch[] {
  const length = (t1 - t0) / ROWS;
  return Array.from({ length: ROWS }, (_, row) => {
    const pixels = [row * FINER, (row + 1) * FINER] as const;
    return {
      from: t0 + row * length,
      to: t0 + (row + 1) * length,
      flight: counts.slice(...pixels).reduce((sum, one) => sum + one, 0) / FINER,
      isMarked: marks?.slice(...pixels).includes(1) ?? false,
    };
  });
}

/** The last value of a metric's first line in a stretch. */
function lastIn({ positions, lines }: Series, base: number, { from, to }: Stretch): number | null {
  let last: number | null = null;
  positions.forEach((position, index) => {
    const at = position - base;
    if (at >= from && at < to) last = lines[0]?.values[index] ?? last;
  });
  return last;
}
