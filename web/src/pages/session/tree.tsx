/** The turns of a session, each with its phases; picking one picks its first span. */
import { count, duration, plural } from "../../model/format";
import { Badge, Swatch, Text } from "../../views/bits";
import { roleOf } from "../../views/nameshare";
import type { Shown } from "./page";

export function TurnTree({ overview, answer, turns, lit, picked, onPick }: Shown) {
  return (
    <section class="panel" aria-label="Turns" data-panel="turns">
      <div class="row">
        <h2>Turns</h2>
        {turns?.turns.some((one) => one.is_counted) && (
          <Badge title="No turn is recorded: each generation begins one">counted</Badge>
        )}
      </div>
      <ol class="turns">
        {turns?.turns.map((turn, i) => (
          <li key={i} class={turn.span_ids.includes(lit ?? picked) ? "lit" : ""}>
            <button class="turn" onClick={() => onPick(turn.span_ids[0]!)}>
              <b>{turn.number === null ? "before" : `turn ${turn.number}`}</b>
              <span class="dim">
                {duration((turn.end_ns ?? answer.now_ns) - turn.start_ns)}
                {turn.tokens_out !== null &&
                  `, ${count(turn.tokens_in)} → ${count(turn.tokens_out)} tokens`}
              </span>
              {turn.errors > 0 && <Badge tone="bad">{plural(turn.errors, "error")}</Badge>}
            </button>
            <ul>
              {Object.entries(turn.phases).map(([name, ns]) => (
                <li key={name}>
                  <Swatch name={name} role={roleOf(overview, name)} /> <Text text={name} />{" "}
                  <span class="dim">{duration(ns)}</span>
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ol>
    </section>
  );
}
