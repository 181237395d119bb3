/** What a reader has to know before reading on: a lost server, a quiet trainer, a crashed run. */
import type { Overview } from "../model/answers";
import { duration, plural } from "../model/format";
import { isAlive, linkState, lostWords, quietS } from "../state/live";
import { link } from "../state/route";

const QUIET_S = 10;

export function StateBar({ overview }: { overview: Overview | null }) {
  if (linkState.value === "lost") {
    return (
      <p class="statebar bad" role="alert">
        <span aria-hidden="true">⚡ </span>
        {lostWords.value}. What is shown stays as it was.
      </p>
    );
  }
  if (isAlive.value && quietS.value >= QUIET_S) {
    return (
      <p class="statebar warn" role="status">
        <span aria-hidden="true">◌ </span>
        No data from the trainer for {duration(Math.floor(quietS.value) * 1e9)}.
      </p>
    );
  }
  if (overview?.is_crashed) {
    return (
      <p class="statebar bad" role="status">
        <span aria-hidden="true">✕ </span>
        The process ended, {plural(overview.unfinished, "session")} unfinished.{" "}
        <a href={link("sessions", "", { f: "status:lost" })}>
          Show them with their last await stacks
        </a>
      </p>
    );
  }
  return null;
}
