/** The head of a session: which it is, what became of it, and where its time went. */
import { duration, reward, visible } from "../../model/format";
import { isImported } from "../../model/origin";
import { formatRange } from "../../model/route";
import { term } from "../../model/term";
import { link } from "../../state/route";
import { Badge, Outcome, Text } from "../../views/bits";
import { Age } from "../../views/age";
import { Elsewhere } from "../../views/elsewhere";
import { nameShare } from "../../views/nameshare";
import { sessionName } from "../../views/sessionlink";
import { SplitBar } from "../../views/splitbar";
import { fateOf } from "../sessions/columns";
import type { Shown } from "./page";

const LONGEST_REASON = 2000;

export function SessionHead({ overview, answer }: Shown) {
  const { session, phases, now_ns, total_ns } = answer;
  const shares = Object.entries(phases).map(([name, one]) => ({
    ...nameShare(overview, name, one.share_ns),
    hint: `${one.count} of them, ${duration(one.sum_ns)} added up`,
  }));
  const since = (ns: number): number => (ns - overview.first_ns) / 1e9;
  const t = formatRange({ from: since(session.start_ns), to: since(session.end_ns ?? now_ns) });
  const step = session.consumed_step ?? session.step;
  const isOpen = session.end_ns === null;
  return (
    <header class="session-head">
      <div class="row">
        <h1>
          <Text text={sessionName(session, session.span_id)} />
        </h1>
        <Outcome outcome={fateOf(session)} />
        <Reward overview={overview} answer={answer} />
        <span>
          {session.waited_ns !== null && `waited ${duration(session.waited_ns)}, `}ran{" "}
          {isOpen ? (
            <Age ns={total_ns} at={{ now_ns, is_alive: overview.is_alive }} />
          ) : (
            duration(total_ns)
          )}
        </span>
        <span class="row spread">
          {step !== null && <a href={link("step", step)}>step {step}</a>}
          {session.task_key !== null && (
            <a href={link("sessions", "", { f: term("task", session.task_key) })}>this task</a>
          )}
          <a href={link("timeline", "", { t, sel: session.span_id })}>timeline</a>
          <Elsewhere session={session.span_id} />
        </span>
      </div>
      {session.reason && session.reason !== session.outcome && (
        <p class="bad reason">{visible(session.reason.slice(0, LONGEST_REASON))}</p>
      )}
      <SplitBar
        label="Time by phase"
        total={total_ns}
        shares={[...shares, nameShare(overview, "other", answer.other_ns)]}
      />
    </header>
  );
}

export function Reward({ overview, answer: { session } }: Pick<Shown, "answer" | "overview">) {
  if (session.reward !== null) return <span>reward {reward(session.reward)}</span>;
  // Of one that went wrong, was lost, or that a file tells of, none will come.
  const mayCome =
    [null, "accepted"].includes(session.outcome) &&
    session.status !== "lost" &&
    !isImported(overview);
  return mayCome ? <Badge>reward pending</Badge> : <span class="dim">no reward</span>;
}
