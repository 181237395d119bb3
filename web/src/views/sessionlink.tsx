/** A session by the name that people know it by: task, sample and try. */
import { visible } from "../model/format";
import { term } from "../model/term";
import { link } from "../state/route";
import { Text } from "./bits";

export interface Named {
  task_key: string | null;
  sample: number | null;
  attempt?: number;
}

export function sessionName(session: Named, id: string): string {
  if (session.task_key === null) return id;
  const sample = session.sample === null ? "" : `#${session.sample}`;
  const tried = session.attempt ? ` (try ${session.attempt + 1})` : "";
  return visible(`${session.task_key}${sample}${tried}`);
}

export function SessionLink({ session, id }: { session: Named; id: string }) {
  return (
    <a href={link("session", id)}>
      <Text text={sessionName(session, id)} max={48} />
    </a>
  );
}

/** More would make an address that servers and browsers cut. */
const MOST_NAMED = 200;

/** A filter for these sessions, or the first of them. */
export function idsTerm(ids: readonly string[]): string {
  return term("id", ...ids.slice(0, MOST_NAMED));
}

/** Where these sessions are listed; the one itself if there is only one. */
export function sessionsHref(ids: readonly string[]): string {
  if (ids.length === 1) return link("session", ids[0]!);
  return link("sessions", "", { f: idsTerm(ids) });
}
