/** Tools, reward, attributes and events of a session. */
import type { SpanDetail } from "../../model/answers";
import { clock, duration, number, visible } from "../../model/format";
import { Outcome, Text, Time } from "../../views/bits";
import { durationCell, textCell } from "../../views/cells";
import { roleOf } from "../../views/nameshare";
import { type Column, Table } from "../../views/table";
import { Reward } from "./head";
import type { Shown } from "./page";

const LONGEST = 2000;

/** A fact as text: a moment or a length by its name, text as it is, everything else as JSON. */
function written(name: string, value: unknown): string {
  if (name.endsWith("_ns") && typeof value === "number") {
    return value > 1e18 ? clock(value, true) : duration(value);
  }
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return visible(text.slice(0, LONGEST)) + (text.length > LONGEST ? "…" : "");
}

/** Everything known under its name; what is missing is left out. */
function Facts({ title, facts }: { title: string; facts: object }) {
  return (
    <>
      <h3>{title}</h3>
      <dl class="pairs">
        {Object.entries(facts)
          .filter(([name, value]) => value !== null && name !== "attrs")
          .map(([name, value]) => (
            <div key={name}>
              <dt>{visible(name).replace(/_ns$/, "").replace(/_/g, " ")}</dt>
              <dd>{written(name, value)}</dd>
            </div>
          ))}
      </dl>
    </>
  );
}

export function AttributesTab({ answer, picked, turns }: Shown) {
  const { session, lag_start, lag_end, lag_consume } = answer;
  const chosen = answer.spans.find(({ span }) => span.span_id === picked);
  const versions = turns?.versions ?? [];
  return (
    <>
      {chosen && <Facts title="Span" facts={{ ...chosen.span, ...chosen.attrs }} />}
      <Facts title="Session" facts={{ ...session, lag_start, lag_end, lag_consume }} />
      <Facts title="Attributes" facts={session.attrs} />
      {versions.length > 0 && (
        <>
          <h3>Versions by segment</h3>
          <ul>
            {versions.map((one, i) => (
              <li key={i}>
                version {one.version}: {number(one.tokens)} tokens from{" "}
                <Time ns={one.start_ns} withMillis />
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

function Calls({ shown, roles }: { shown: Shown; roles: readonly string[] }) {
  const { answer, overview, onPick } = shown;
  const calls = answer.spans.filter(({ span }) =>
    roles.includes(roleOf(overview, span.name) ?? ""),
  );
  if (calls.length === 0) return <p class="dim">No such call was recorded in this session.</p>;
  const columns: Column<SpanDetail>[] = [
    textCell(
      "Call",
      ({ span }) => span.detail ?? span.name,
      ({ span }) => (
        <button class="link" onClick={() => onPick(span.span_id)}>
          <Text text={span.detail ?? span.name} max={40} />
        </button>
      ),
    ),
    durationCell("Took", ({ span }) => (span.end_ns ?? answer.now_ns) - span.start_ns),
    durationCell("Queued", ({ span }) => span.queue_ns),
    textCell(
      "Result",
      ({ span }) => span.status,
      ({ span }) => (
        <>
          <Outcome outcome={span.status} /> {span.reason && <Text text={span.reason} max={200} />}
        </>
      ),
    ),
  ];
  return <Table label="Calls" columns={columns} rows={calls} rowKey={({ span }) => span.span_id} />;
}

export function ToolsTab(shown: Shown) {
  return <Calls shown={shown} roles={["tool", "env"]} />;
}

export function RewardTab(shown: Shown) {
  return (
    <>
      <p>
        <Reward {...shown} />
      </p>
      <Calls shown={shown} roles={["reward"]} />
    </>
  );
}

export function EventsTab({ answer: { events } }: Shown) {
  if (events.length === 0) return <p class="dim">No event was recorded in this session.</p>;
  return (
    <ol class="events">
      {events.map((one, i) => (
        <li key={i}>
          <Time ns={one.time_ns} withMillis /> <Text text={one.name} />{" "}
          <Text text={JSON.stringify(one.attrs)} max={1000} />
        </li>
      ))}
    </ol>
  );
}
