/** The spans in view in words: as rows of a table, and the picked one as a spoken line. */
import { FLAG } from "../model/frame";
import { duration, grouped, plural, visible } from "../model/format";
import { endNs, type SpanRef, startNs } from "../model/hit";
import { boxesBetween } from "../model/lanes";
import { firstEndingAfter, firstStartingAt, rangeOf } from "../model/spans";
import { durationCell, textCell } from "../views/cells";
import { type Column, Table } from "../views/table";
import type { Scene } from "./scene";

const MOST_LISTED = 300;

/** Spoken whenever another span is picked. */
export function Spoken({ scene }: { scene: Scene }) {
  const span = scene.selected.value;
  return (
    <p class="visually-hidden" role="status" aria-live="polite">
      {span ? wordsOf(scene, span) : ""}
    </p>
  );
}

interface Row {
  lane: string;
  span: string;
  start_ns: number;
  ran_ns: number;
  status: string;
}

export function SpanTable({ scene }: { scene: Scene }) {
  const { spans, of } = spansInView(scene);
  if (of === 0) {
    return <p class="dim">No span is in view: zoom out, or unfold a group.</p>;
  }
  const refs = new Map(spans.map((span) => [rowOf(scene, span), span]));
  const columns: Column<Row>[] = [
    textCell("Lane", (row) => row.lane),
    textCell(
      "Span",
      (row) => row.span,
      (row) => (
        <button
          class="link"
          onClick={() => {
            scene.selected.value = refs.get(row)!;
          }}
        >
          {row.span}
        </button>
      ),
    ),
    durationCell("Start", (row) => row.start_ns, "since the run's first moment"),
    durationCell("Duration", (row) => row.ran_ns, "so far, if it is open"),
    textCell("Status", (row) => row.status),
  ];
  return (
    <>
      <p class="dim">
        {of > spans.length
          ? `The first ${spans.length} from the top; ${grouped(of - spans.length)} more are in view.`
          : `${plural(of, "row")}, from the top.`}
      </p>
      <Table
        label="Spans in view"
        columns={columns}
        rows={[...refs.keys()]}
        rowKey={({ lane, span, start_ns }) => `${lane} ${span} ${start_ns}`}
        limit={MOST_LISTED}
      />
    </>
  );
}

/** The first spans in view from the top, and how many there are. */
function spansInView(scene: Scene): { spans: SpanRef[]; of: number } {
  const data = scene.data.value;
  const layout = scene.layout.value;
  const { t0, t1 } = scene.window.value;
  const scroll = scene.scroll.value;
  void scene.growth.value;
  const spans: SpanRef[] = [];
  let of = 0;
  if (data === null || layout === null) {
    return { spans, of };
  }
  const height = scene.size.value.height - layout.pinnedHeight;
  const boxes = boxesBetween(layout.lanes, scroll, scroll + height);
  for (const { lane } of [...layout.pinned, ...boxes]) {
    for (let row = 0; row < (data.header.lanes[lane]?.rows ?? 1); row++) {
      for (const table of data.tables) {
        const [low, high] = rangeOf(table, lane, row);
        const tick = (time: number): number => (time - table.originNs) / table.tickNs;
        const first = firstEndingAfter(table, low, high, tick(t0));
        const after = firstStartingAt(table, first, high, tick(t1));
        of += after - first;
        for (let index = first; index < after && spans.length < MOST_LISTED; index++) {
          spans.push({ table, index });
        }
      }
    }
  }
  return { spans, of };
}

function rowOf(scene: Scene, span: SpanRef): Row {
  const flags = span.table.flags[span.index]!;
  const status = [...(flags & FLAG.open ? ["open"] : []), ...flagWords(flags)].join(", ");
  return {
    lane: laneOf(scene, span),
    span: namedIn(scene, span),
    start_ns: Math.max(startNs(span), 0),
    ran_ns: endNs(span, scene.now()) - startNs(span),
    status: status || "ended",
  };
}

function laneOf(scene: Scene, { table, index }: SpanRef): string {
  return visible(scene.data.peek()?.header.lanes[table.lane[index]!]?.label ?? "");
}

/** A span's name; in a tile short neighbours are merged into one. */
function namedIn(scene: Scene, span: SpanRef): string {
  const merged = span.table.tally?.[span.index] ?? 1;
  const what = merged > 1 ? `${plural(merged, "span")}, mostly ` : "";
  return `${what}${visible(scene.nameOf(span))}`;
}

/** A span in one sentence. */
export function wordsOf(scene: Scene, span: SpanRef): string {
  const { table, index } = span;
  const flags = table.flags[index]!;
  const length = duration(endNs(span, scene.now()) - startNs(span));
  const merged = table.tally?.[index] ?? 1;
  const words = [
    namedIn(scene, span),
    merged > 1 ? "" : flags & FLAG.open ? `open for ${length}` : length,
    `at ${duration(Math.max(startNs(span), 0))}`,
    `on ${laneOf(scene, span)}`,
    ...flagWords(flags),
  ];
  return words.filter(Boolean).join(", ");
}

export function flagWords(flags: number): string[] {
  const words: string[] = [];
  if (flags & FLAG.error) words.push("error");
  if (flags & FLAG.stuck) words.push("stuck");
  if (flags & FLAG.lost) words.push("lost");
  if (flags & FLAG.retried) words.push("retried");
  if (flags & FLAG.hit) words.push("matches the filter");
  return words;
}
