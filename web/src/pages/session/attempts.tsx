/** All tries at one sample, and what went wrong in each. */
import type { SessionTurns } from "../../model/answers";
import { plural } from "../../model/format";
import { link } from "../../state/route";
import { Outcome, Text, Time } from "../../views/bits";
import { fateOf } from "../sessions/columns";

export function AttemptList({ turns: { attempts } }: { turns: SessionTurns }) {
  const errors = attempts.reduce((sum, one) => sum + one.errors.length, 0);
  if (attempts.length < 2 && !errors) return null;
  return (
    <details class="attempts" open>
      <summary>
        {plural(attempts.length, "attempt")}, {plural(errors, "error")}
      </summary>
      <ol>
        {attempts.map((one) => (
          <li key={one.session_id}>
            <a
              href={link("session", one.session_id)}
              aria-current={one.is_this ? "page" : undefined}
            >
              try {one.attempt + 1}
            </a>{" "}
            <Outcome outcome={fateOf(one)} /> on <Text text={one.host} />
            <ul>
              {one.errors.map((error) => (
                <li key={error.span_id}>
                  <Time ns={error.time_ns} withMillis /> <Text text={error.name} />{" "}
                  {error.detail && <Text text={error.detail} />}:{" "}
                  <Text text={error.reason} max={300} />
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ol>
    </details>
  );
}
