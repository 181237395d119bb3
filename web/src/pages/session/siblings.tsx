/** The strip of samples of the same task and step, with what they got and how long they took. */
import type { SessionAnswer, SessionRow } from "../../model/answers";
import { duration, reward } from "../../model/format";
import { link, param } from "../../state/route";

/** All of the group in order, this one among them. */
export function siblingsOf({ session, siblings }: SessionAnswer): SessionRow[] {
  return [session, ...siblings].sort(
    (a, b) => (a.sample ?? 0) - (b.sample ?? 0) || a.attempt - b.attempt || a.start_ns - b.start_ns,
  );
}

export function Siblings({ answer }: { answer: SessionAnswer }) {
  const all = siblingsOf(answer);
  if (all.length < 2) return null;
  const ran = (one: SessionRow): string => duration((one.end_ns ?? answer.now_ns) - one.start_ns);
  return (
    <nav class="siblings" aria-label="Siblings">
      <h2>Siblings</h2>
      <ol class="chips">
        {all.map((one) => (
          <li key={one.span_id} class="chip">
            <a
              href={link("session", one.span_id, { tab: param("tab") })}
              aria-current={one.span_id === answer.session.span_id ? "page" : undefined}
            >
              #{one.sample ?? "?"}
              {one.attempt > 0 && ` try ${one.attempt + 1}`} <b>{reward(one.reward)}</b>{" "}
              <span class="dim">{ran(one)}</span>
            </a>
          </li>
        ))}
      </ol>
    </nav>
  );
}
