/** The twin of the canvas in the DOM: the spans in view as a list of buttons, and a spoken line. */
import { useState } from "preact/hooks";
import { FLAG } from "../model/frame";
import { duration, plural, visible } from "../model/format";
import { endNs, type SpanRef, startNs } from "../model/hit";
import { boxesBetween } from "../model/lanes";
import { firstEndingAfter, rangeOf } from "../model/spans";
import type { Scene } from "./scene";

const MOST_LISTED = 200;

/** Spoken whenever another span is picked. */
export function Spoken({ scene }: { scene: Scene }) {
  const span = scene.selected.value;
  return (
    <p class="visually-hidden" role="status" aria-live="polite">
      {span ? wordsOf(scene, span) : ""}
    </p>
  );
}

export function SpanList({ scene }: { scene: Scene }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details
      class="tl-list"
      onToggle={(event) => {
        setOpen(event.currentTarget.open);
      }}
    >
      <summary>Spans in view as a list</summary>
      {isOpen && <ListBody scene={scene} />}
    </details>
  );
}

function ListBody({ scene }: { scene: Scene }) {
  const spans = spansInView(scene);
  if (spans.length === 0) {
    return <p class="dim">No span is in view.</p>;
  }
  return (
    <>
      <p class="dim">
        {spans.length === MOST_LISTED
          ? `The first ${MOST_LISTED} from the top; zoom in for others.`
          : `${plural(spans.length, "span")}.`}
      </p>
      <ul>
        {spans.map((span) => (
          <li key={`${span.table.lane[span.index]} ${span.table.row[span.index]} ${span.index}`}>
            <button
              class="link"
              onClick={() => {
                scene.selected.value = span;
              }}
            >
              {wordsOf(scene, span)}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

function spansInView(scene: Scene): SpanRef[] {
  const data = scene.data.value;
  const layout = scene.layout.value;
  const { t0, t1 } = scene.window.value;
  const scroll = scene.scroll.value;
  const found: SpanRef[] = [];
  if (data === null || layout === null) {
    return found;
  }
  const boxes = boxesBetween(layout.lanes, scroll, scroll + scene.size.value.height);
  for (const { lane } of [...layout.pinned, ...boxes]) {
    for (let row = 0; row < (data.header.lanes[lane]?.rows ?? 1); row++) {
      for (const table of data.tables) {
        const [low, high] = rangeOf(table, lane, row);
        const tick = (t0 - table.originNs) / table.tickNs;
        const last = (t1 - table.originNs) / table.tickNs;
        const first = firstEndingAfter(table, low, high, tick);
        for (let index = first; index < high && table.start[index]! < last; index++) {
          if (found.push({ table, index }) === MOST_LISTED) {
            return found;
          }
        }
      }
    }
  }
  return found;
}

/** A span in one sentence. */
export function wordsOf(scene: Scene, span: SpanRef): string {
  const { table, index } = span;
  const lane = scene.data.peek()?.header.lanes[table.lane[index]!]?.label ?? "";
  const flags = table.flags[index]!;
  const length = duration(endNs(span, scene.now()) - startNs(span));
  const merged = table.tally?.[index] ?? 1;
  const what = merged > 1 ? `${plural(merged, "span")}, mostly ` : "";
  const words = [
    `${what}${visible(scene.nameOf(span))}`,
    merged > 1 ? "" : flags & FLAG.open ? `open for ${length}` : length,
    `at ${duration(Math.max(startNs(span), 0))}`,
    `on ${visible(lane)}`,
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
