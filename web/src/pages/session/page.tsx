/** One session: what this rollout did, turn by turn, and what became of it. */
import { useSignal } from "../../state/signals";
import type { Overview, SessionAnswer, SessionTurns } from "../../model/answers";
import { term } from "../../model/term";
import { useAnswer } from "../../state/answer";
import { useKeys } from "../../state/keys";
import { link, navigate, param, setParams } from "../../state/route";
import { EnginesPanel } from "../../views/engines";
import { Failure, Skeleton } from "../../views/panel";
import type { PageProps } from "../index";
import { AttemptList } from "./attempts";
import { SessionHead } from "./head";
import { Siblings, siblingsOf } from "./siblings";
import { Tabs } from "./tabs";
import { TurnTree } from "./tree";
import { Waterfall } from "./waterfall";

/** What all parts of the page share. */
export interface Shown {
  overview: Overview;
  answer: SessionAnswer;
  turns: SessionTurns | null;
  /** The span under the pointer, in whichever part. */
  lit: string | null;
  onLight: (span: string | null) => void;
  /** The span that was picked; it stands in the address. */
  picked: string;
  onPick: (span: string) => void;
}

export function SessionPage({ overview, arg }: PageProps) {
  const asked = useAnswer("session", { session: arg });
  const turns = useAnswer("turns", { session: arg });
  const lit = useSignal<string | null>(null);
  const { data } = asked;
  const go = (by: number) => () => {
    if (!data) return;
    const all = siblingsOf(data);
    const at = all.findIndex((one) => one.span_id === data.session.span_id);
    const next = all[at + by];
    if (next) navigate(link("session", next.span_id, { tab: param("tab") }));
  };
  const pick = (span: string): void =>
    setParams({ sel: param("sel") === span ? null : span }, { replace: true });
  useKeys(
    [
      { key: "[", label: "Previous sibling", run: go(-1) },
      { key: "]", label: "Next sibling", run: go(1) },
    ],
    [data],
  );
  if (!data) {
    const task = /^(.+)#\d+$/.exec(arg)?.[1];
    return (
      <div class="page">
        <h1>Session</h1>
        {asked.error ? <Failure title="session" error={asked.error} /> : <Skeleton />}
        <p>
          <a href={link("sessions", "", task ? { f: term("task", task) } : {})}>
            {task ? "All sessions of this task" : "All sessions"}
          </a>
        </p>
      </div>
    );
  }
  const shown: Shown = {
    overview,
    answer: data,
    turns: turns.data,
    lit: lit.value,
    onLight: (span) => (lit.value = span),
    picked: param("sel"),
    onPick: pick,
  };
  const { pool, start_ns, end_ns } = data.session;
  return (
    <div class="page session-page">
      <SessionHead {...shown} />
      <Siblings answer={data} />
      {turns.data && <AttemptList turns={turns.data} />}
      <EnginesPanel
        params={{ replica: pool, since_ns: start_ns, until_ns: end_ns ?? "" }}
        from={start_ns}
        since="since the session's start"
      />
      <div class="session-parts">
        <TurnTree {...shown} />
        <Waterfall {...shown} />
        <Tabs {...shown} />
      </div>
    </div>
  );
}
