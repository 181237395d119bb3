/** The figures that lead the page, each with its last fifteen minutes and a way in. */
import type { Eta, Now, ProgressTile, Range } from "../../model/answers";
import { grouped, plural, rate, visible } from "../../model/format";
import { formatRange } from "../../model/route";
import { link } from "../../state/route";
import { Age, useSince, wholeSeconds } from "../../views/age";
import { Badge, Text, Tile } from "../../views/bits";
import { sessionName } from "../../views/sessionlink";

const RUNNING = "status:open";

export function Tiles({ now, firstNs }: { now: Now; firstNs: number }) {
  return (
    <div class="tiles">
      <InFlight now={now} />
      <Progress progress={now.progress} now={now} />
      <Tile
        label="Sessions ended per minute"
        value={rate(now.ended.rate)}
        note={`over ${stretch(now.ended.window_ns)}`}
        href={link("sessions", "", { f: `-${RUNNING}` })}
        spark={now.ended.spark}
      />
      <Tile
        label="Output tokens per second"
        value={rate(now.tokens.rate)}
        note={`over ${stretch(now.tokens.window_ns)}`}
        href={link("timeline", "", { t: lastWindow(now, now.tokens.window_ns, firstNs) })}
        spark={now.tokens.spark}
      />
      <Oldest now={now} />
      <Tile
        label="Errors"
        value={grouped(now.failures.recent)}
        note={`in ${stretch(now.failures.window_ns)}; the run's mean is ${rate(now.failures.run_per_minute)} a minute`}
        href={link("sessions", "", { f: "status:error" })}
        spark={now.failures.spark}
      />
    </div>
  );
}

/** A round stretch of time: 60 s, 5 min. */
function stretch(ns: number): string {
  return ns > 60e9 && ns % 60e9 === 0 ? `${ns / 60e9} min` : `${Math.round(ns / 1e9)} s`;
}

function lastWindow(now: Now, windowNs: number, firstNs: number): string {
  const to = (now.now_ns - firstNs) / 1e9;
  return formatRange({ from: Math.max(0, to - windowNs / 1e9), to });
}

function InFlight({ now }: { now: Now }) {
  const { count: running, capacity, is_assumed, spark } = now.in_flight;
  return (
    <Tile
      label="In flight"
      value={
        <>
          {grouped(running)}
          {capacity !== null && <span class="dim"> / {grouped(capacity)}</span>}
        </>
      }
      note={
        capacity === null ? (
          "no slots known"
        ) : is_assumed ? (
          <Badge title="No pool declares its slots: the most ever seen at once">assumed</Badge>
        ) : (
          "of the slots declared"
        )
      }
      href={link("sessions", "", { f: RUNNING })}
      spark={spark}
    />
  );
}

function Progress({ progress, now }: { progress: ProgressTile; now: Now }) {
  const { step, done, of, eta, is_running, spark } = progress;
  if (step === null) {
    return <Tile label="Progress" value={grouped(done)} note="sessions over; no steps recorded" />;
  }
  return (
    <Tile
      label={`Step ${step}${is_running ? "" : ", over"}`}
      value={
        <>
          {grouped(done)}
          {of !== null && <span class="dim"> of {grouped(of)}</span>}
        </>
      }
      note={is_running ? <EtaNote eta={eta} now={now} /> : "sessions over"}
      href={link("step", step)}
      spark={spark}
    />
  );
}

function EtaNote({ eta, now }: { eta: Eta | null; now: Now }) {
  const since = useSince(now);
  const end = eta?.step_end ?? eta?.last_end ?? null;
  const left = (at: number): number => Math.max(0, at - now.now_ns - since);
  if (eta && eta.outliers.length > 0 && eta.at_least_ns !== null) {
    return (
      <>
        at least {wholeSeconds(eta.at_least_ns)}; {plural(eta.outliers.length, "session")} older
        than any seen
      </>
    );
  }
  if (!eta || !end) return <>sessions over; too few yet to say when it ends</>;
  return (
    <span title={`From the lengths of ${eta.known} sessions; p10 to p90 of 200 draws`}>
      {rangeText(end, left)}
    </span>
  );
}

function rangeText(end: Range, left: (at: number) => number): string {
  const [low, middle, high] = [left(end.p10_ns), left(end.p50_ns), left(end.p90_ns)];
  if (high < 1e9) return "ends any moment";
  return `ends in ${wholeSeconds(middle)} (${wholeSeconds(low)} to ${wholeSeconds(high)})`;
}

function Oldest({ now }: { now: Now }) {
  const { session_id, age_ns, name, detail, task_key, sample, spark } = now.oldest;
  if (session_id === null) {
    return <Tile label="Oldest open" value="–" note="nothing is open" spark={spark} />;
  }
  return (
    <Tile
      label="Oldest open"
      value={<Age ns={age_ns} at={now} />}
      note={
        <>
          <Text text={sessionName({ task_key, sample }, session_id)} max={28} /> in{" "}
          {visible(name ?? "no phase")} {detail && <Text text={detail} max={20} />}
        </>
      }
      href={link("session", session_id)}
      spark={spark}
    />
  );
}
