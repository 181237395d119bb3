/** One span in the drawer: what the columns say at once, then the exact record from the source. */
import { useEffect, useState } from "preact/hooks";
import { duration, moment } from "../model/format";
import { endNs, type SpanRef, startNs } from "../model/hit";
import { SourceError } from "../model/source";
import { link, runName } from "../state/route";
import { source } from "../state/source";
import { Badge, Text } from "../views/bits";
import { Drawer } from "../views/drawer";
import type { Scene } from "./scene";
import { flagWords } from "./spantable";

type Exact = Readonly<Record<string, unknown>>;

/** Fields that are told above, or say nothing to a reader. */
const TOLD = new Set([
  "name",
  "start_ns",
  "end_ns",
  "duration_ns",
  "session_id",
  "attrs",
  "process",
]);

export function SpanDrawer({ scene, by, span }: { scene: Scene; by: string; span: SpanRef }) {
  const [exact, error] = useExact(scene, by, span);
  const session = scene.sessionOf(span);
  const lane = scene.data.value?.header.lanes[span.table.lane[span.index]!];
  const flags = span.table.flags[span.index]!;
  const merged = span.table.tally?.[span.index] ?? 1;
  const start = startNs(span);
  const length = (exact?.["duration_ns"] as number | null) ?? endNs(span, scene.now()) - start;
  return (
    <Drawer
      title={<Text text={scene.nameOf(span)} />}
      label="Span"
      onClose={() => {
        scene.selected.value = null;
      }}
    >
      {merged > 1 && (
        <p>{merged} spans share this pixel, mostly this one; zoom in to tell them apart.</p>
      )}
      <div class="row">
        {flagWords(flags).map((word) => (
          <Badge key={word} tone="bad">
            {word}
          </Badge>
        ))}
        {session && <a href={link("session", session)}>Open the session</a>}
        {typeof exact?.["step"] === "number" && (
          <a href={link("step", exact["step"])}>Step {exact["step"]}</a>
        )}
        <button
          onClick={() => {
            scene.fit();
          }}
        >
          Fit
        </button>
        <button
          onClick={() => {
            scene.togglePin(scene.laneIdOf(span));
          }}
        >
          Pin the lane
        </button>
      </div>
      <dl class="tl-facts">
        <Fact name="took" value={merged > 1 ? "–" : duration(length)} />
        <Fact name="began" value={`${duration(Math.max(start, 0))} after the start`} />
        <Fact name="at" value={moment(Number(scene.baseNs) + start)} />
        <Fact name="lane" value={lane?.label ?? "–"} />
        {Object.entries(exact ?? {})
          .filter(([name, value]) => !TOLD.has(name) && value !== null && value !== "")
          .map(([name, value]) => (
            <Fact key={name} name={name} value={written(name, value)} />
          ))}
        {Object.entries((exact?.["attrs"] as Exact | undefined) ?? {}).map(([name, value]) => (
          <Fact key={`attr ${name}`} name={name} value={written("", value)} />
        ))}
      </dl>
      {error && <p class="dim">{error}</p>}
    </Drawer>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt class="dim">
        <Text text={name.replace(/_ns$/, "").replaceAll("_", " ")} max={40} />
      </dt>
      <dd>
        <Text text={value} max={400} />
      </dd>
    </div>
  );
}

function written(name: string, value: unknown): string {
  if (typeof value === "number" && name.endsWith("_ns")) return duration(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The exact span; while the next one is on its way the last is not shown as if it were this. */
function useExact(scene: Scene, by: string, span: SpanRef): [Exact | null, string] {
  const [got, setGot] = useState<{ for: string; exact: Exact | null; error: string } | null>(null);
  const lane = scene.laneIdOf(span);
  const row = span.table.row[span.index]!;
  const start = String(scene.baseNs + BigInt(Math.round(startNs(span))));
  const merged = span.table.tally?.[span.index] ?? 1;
  const key = `${by} ${lane} ${row} ${start}`;
  const session = scene.sessionOf(span);
  useEffect(() => {
    if (!source().isLive || merged > 1) return;
    const abort = new AbortController();
    source()
      .ask<Exact>(runName.peek(), "span", { by, lane, row, start, session }, abort.signal)
      .then((exact) => setGot({ for: key, exact, error: "" }))
      .catch((error: unknown) => {
        if (abort.signal.aborted) return;
        const told = error instanceof SourceError ? error.message : "It cannot be read.";
        setGot({ for: key, exact: null, error: told });
      });
    return () => {
      abort.abort();
    };
  }, [key, merged]);
  return got?.for === key ? [got.exact, got.error] : [null, ""];
}
