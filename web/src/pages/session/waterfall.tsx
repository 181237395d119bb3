/** The spans of a session along its time, each below its parent, engine times below generations. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { duration, visible } from "../../model/format";
import { nameShare } from "../../views/nameshare";
import type { Shown } from "./page";

const SHOWN = 300;

interface Bar {
  name: string;
  depth: number;
  start: number;
  end: number | null;
  /** Whose colour it has. */
  like: string;
  look: string;
  hint: string;
  /** None for what is no span of its own. */
  span?: string;
}

function barsOf({ answer, turns }: Shown): Bar[] {
  const { session, spans } = answer;
  const bars: Bar[] = [];
  if (session.waited_ns) {
    const [start, end] = [session.start_ns - session.waited_ns, session.start_ns];
    const hint = "from its submission to its start";
    bars.push({ name: "waited", depth: 0, start, end, like: "queue", look: "hatched", hint });
  }
  for (const { span, depth } of spans) {
    bars.push({
      name: span.detail ? `${span.name} ${span.detail}` : span.name,
      depth,
      start: span.start_ns,
      end: span.end_ns,
      like: span.name,
      look: span.status,
      hint: span.reason ?? "",
      span: span.span_id,
    });
    for (const one of turns?.engine ?? []) {
      if (one.span_id !== span.span_id) continue;
      bars.push({
        name: one.name,
        depth: depth + 1,
        start: one.start_ns,
        end: one.end_ns,
        like: span.name,
        look: one.name === "queue" ? "engine hatched" : "engine",
        hint: one.is_derived ? "placed by lengths that the generation tells" : "",
      });
    }
  }
  return bars;
}

export function Waterfall(shown: Shown) {
  const [most, setMost] = useState(SHOWN);
  const bars = barsOf(shown);
  const { session, now_ns } = shown.answer;
  const from = session.start_ns - (session.waited_ns ?? 0);
  const whole = Math.max((session.end_ns ?? now_ns) - from, 1);
  return (
    <section class="panel" aria-label="Waterfall" data-panel="waterfall">
      <h2>Waterfall</h2>
      <ol class="waterfall spans" onPointerLeave={() => shown.onLight(null)}>
        {bars.slice(0, most).map((bar, i) => {
          const length = (bar.end ?? now_ns) - bar.start;
          const { colour, texture } = nameShare(shown.overview, bar.like, 0);
          return (
            <Line key={bar.span ?? i} bar={bar} shown={shown}>
              <span class="waterfall-track">
                <i
                  class={`${texture ?? ""} ${bar.look}`}
                  style={{
                    left: `${((bar.start - from) / whole) * 100}%`,
                    width: `${(length / whole) * 100}%`,
                    backgroundColor: `var(${colour})`,
                  }}
                />
              </span>
              <span class="waterfall-number">
                {duration(length)}
                {bar.end === null && "…"}
              </span>
            </Line>
          );
        })}
      </ol>
      {bars.length === 0 && <p class="dim">No phase was recorded in it.</p>}
      {bars.length > most && (
        <button class="link" onClick={() => setMost(Infinity)}>
          Show all {bars.length}
        </button>
      )}
    </section>
  );
}

function Line({ bar, shown, children }: { bar: Bar; shown: Shown; children: ComponentChildren }) {
  const { span } = bar;
  const style = { paddingLeft: `${Math.min(bar.depth, 8) * 12}px` };
  const name = visible(bar.name.slice(0, 120));
  const hint = visible(bar.hint.slice(0, 1000));
  return (
    <li
      class={span && (shown.lit ?? shown.picked) === span ? "lit" : ""}
      data-span={span}
      onPointerEnter={() => shown.onLight(span ?? null)}
    >
      {span ? (
        <button
          class="link span-name"
          style={style}
          title={hint || name}
          aria-pressed={shown.picked === span}
          onClick={() => shown.onPick(span)}
        >
          {bar.look === "error" && "✕ "}
          {name}
        </button>
      ) : (
        <span class="dim" style={style} title={hint}>
          {name}
        </span>
      )}
      {children}
    </li>
  );
}
