/** Now: is the run healthy, and what is stuck? Made of what has not ended. */
import { useEffect } from "preact/hooks";
import type { Now, Overview } from "../../model/answers";
import { moment, plural } from "../../model/format";
import { isImported } from "../../model/origin";
import { useAnswer } from "../../state/answer";
import { isAlive, isPaused, pulse, second } from "../../state/live";
import { link } from "../../state/route";
import { Badge } from "../../views/bits";
import { EnginesPanel } from "../../views/engines";
import { Elsewhere } from "../../views/elsewhere";
import { Panel } from "../../views/panel";
import type { PageProps } from "../index";
import { Errors } from "./errors";
import { HostsPanel } from "./hosts";
import { InFlight } from "./inflight";
import { MetricNow } from "./metric";
import { Stuck, alarmText } from "./stuck";
import { Tiles } from "./tiles";
import { Waits } from "./waits";

/** A run that hangs sends nothing new, and that is when bands change. */
const LOOK_EVERY_S = 10;

export function NowPage({ overview }: PageProps) {
  const asked = useAnswer("now");
  useLooking();
  const { roles } = overview;
  return (
    <div class="page now">
      <header class="row">
        <h1>Now</h1>
        {asked.data && !asked.data.is_alive && (
          <Ended now={asked.data} isFile={isImported(overview)} />
        )}
        <Elsewhere />
      </header>
      {overview.spans === 0 && asked.data?.is_alive && <NothingYet />}
      <Panel title="At a glance" asked={asked} className="bare">
        {(now) => <Tiles now={now} firstNs={overview.first_ns} />}
      </Panel>
      <Panel
        title="Stuck and slow"
        asked={asked}
        hint={asked.data ? alarmText(asked.data) : ""}
        empty={(now) => (now.stuck.length === 0 ? <NothingOpen overview={overview} /> : null)}
      >
        {(now) => <Stuck now={now} roles={roles} />}
      </Panel>
      <Panel
        title="In flight by phase"
        asked={asked}
        hint="a click on a colour opens its sessions, a drag shows that time in the timeline"
        empty={(now) =>
          now.by_phase.counts.every((one) => one.every((n) => n === 0))
            ? "No session was in flight in these fifteen minutes."
            : null
        }
      >
        {(now) => <InFlight now={now} firstNs={overview.first_ns} />}
      </Panel>
      <Panel
        title="Who waits"
        asked={asked}
        empty={(now) =>
          now.waits.length === 0
            ? "No steps are recorded, so it cannot be told who waits for whom."
            : null
        }
      >
        {(now) => <Waits waits={now.waits} at={now} />}
      </Panel>
      <EnginesPanel params={{}} from={overview.first_ns} since="since the run's start" />
      {asked.data && <MetricNow nowNs={asked.data.now_ns} />}
      <HostsPanel isAlive={asked.data?.is_alive ?? overview.is_alive} overview={overview} />
      <Panel
        title="Errors"
        asked={asked}
        hint="of the last fifteen minutes"
        empty={(now) =>
          now.errors.lines.length === 0
            ? "No span ended in an error in these fifteen minutes."
            : null
        }
      >
        {(now) => <Errors now={now} />}
      </Panel>
    </div>
  );
}

function NothingOpen({ overview }: { overview: Overview }) {
  if (!overview.is_crashed) return <>Nothing is open, so nothing can be stuck.</>;
  return (
    <>
      Nothing is open:{" "}
      <a href={link("sessions", "", { f: "status:lost" })}>
        {plural(overview.unfinished, "session")}
      </a>{" "}
      ended with the process.
    </>
  );
}

const FIRST_LINES = `with rs.task("gsm8k/1"), rs.session(sample=0):
    with rs.phase("generate"):
        ...`;

/** A run that has begun and recorded no span. */
function NothingYet() {
  return (
    <section class="nothing">
      <p>The run has begun and nothing is recorded yet. Rollouts show up once they are timed:</p>
      <pre>{FIRST_LINES}</pre>
      <p class="dim" role="status">
        Listening; this page fills by itself.
      </p>
    </section>
  );
}

function Ended({ now, isFile }: { now: Now; isFile: boolean }) {
  return (
    <>
      <Badge>{isFile ? "as of the end of its files" : "as of its end"}</Badge>
      <span class="dim">{moment(now.now_ns)}; ages count up to then</span>
    </>
  );
}

/** Ask again now and then though nothing came. */
function useLooking(): void {
  const tick = second.value;
  useEffect(() => {
    if (tick % LOOK_EVERY_S === 0 && isAlive.peek() && !isPaused.peek()) pulse.value += 1;
  }, [tick]);
}
