/** How many versions old samples were when they started, ended and were consumed. */
import type { LagHistogram, PhaseSplit, Staleness, StepAnswer } from "../../model/answers";
import { grouped, number, percent, plural } from "../../model/format";
import type { Asked } from "../../state/answer";
import { link } from "../../state/route";
import { Panel } from "../../views/panel";
import { type Column, Table } from "../../views/table";
import { durationCell, textCell } from "../../views/cells";

export function StalenessPanel({ asked, step }: { asked: Asked<StepAnswer>; step: number }) {
  return (
    <Panel
      title="Staleness"
      hint="versions between the oldest one that made a token and the newest published"
      asked={asked}
      empty={({ staleness }) => nothing(staleness)}
    >
      {({ staleness }) => (
        <>
          <div class="lags">
            <Lags title="At start" lags={staleness.at_start} bound={null} />
            <Lags title="At end" lags={staleness.at_end} bound={null} />
            <Lags title="When consumed" lags={staleness.at_consume} bound={staleness.bound} />
          </div>
          <p>{summary(staleness)}</p>
          {staleness.without_version > 0 && (
            <p class="dim">
              <a href={link("sessions", "", { f: `version:none step:${step}` })}>
                {plural(staleness.without_version, "session")}
              </a>{" "}
              did not say which version made them, and are not among these.
            </p>
          )}
          {staleness.stale_count > 0 && staleness.rest_count > 0 && (
            <Table
              label="Phase time of stale sessions"
              columns={phaseColumns(staleness)}
              rows={staleness.phases}
              rowKey={(row) => row.name}
              limit={6}
            />
          )}
        </>
      )}
    </Panel>
  );
}

function nothing(staleness: Staleness): string | null {
  if (!staleness.is_published)
    return "No version was ever published, so no lag can be told: record the event weights.published with its version.";
  return staleness.at_start.count + staleness.at_end.count > 0
    ? null
    : "No session of the step says which version made it.";
}

function summary(staleness: Staleness): string {
  const { in_flight, in_queue, bound, beyond_bound, token_mean } = staleness;
  const parts = [
    `Added in flight: ${number(in_flight.total)} over ${plural(in_flight.count, "session")} ` +
      `(${ranks(in_flight)}); in the queue: ${number(in_queue.total)} over ${grouped(in_queue.count)} ` +
      `(${ranks(in_queue)}).`,
  ];
  if (bound !== null)
    parts.push(`${plural(beyond_bound, "session")} consumed beyond the bound of ${bound}.`);
  if (token_mean !== null) parts.push(`The average consumed token lags ${number(token_mean)}.`);
  return parts.join(" ");
}

function ranks({ p50, p95, max }: LagHistogram): string {
  return `p50 ${p50 ?? "–"} · p95 ${p95 ?? "needs 20"} · max ${max ?? "–"}`;
}

/** A bar for each lag; the numbers stand beside, so it needs no other table. */
function Lags(props: { title: string; lags: LagHistogram; bound: number | null }) {
  const { lags, bound } = props;
  const most = Math.max(1, ...lags.bins.map(([, sessions]) => sessions));
  return (
    <div>
      <h3>
        {props.title} <span class="dim">n {grouped(lags.count)}</span>
      </h3>
      <table class="bins" aria-label={`Lag ${props.title.toLowerCase()}`}>
        <tbody>
          {lags.bins.map(([lag, sessions]) => (
            <tr key={lag} class={bound !== null && lag > bound ? "beyond" : ""}>
              <th scope="row">{lag}</th>
              <td class="bin">
                <i style={{ width: `${(sessions / most) * 100}%` }} />
              </td>
              <td>{grouped(sessions)}</td>
              <td class="dim">{percent(sessions / (lags.count || 1))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="dim">
        {ranks(lags)}
        {bound !== null && ` · bound ${bound}`}
      </p>
    </div>
  );
}

function phaseColumns({ stale_count, rest_count }: Staleness): Column<PhaseSplit>[] {
  return [
    textCell("Phase", (row) => row.name),
    durationCell(`p50 at lag ≥ 2 (n ${stale_count})`, (row) => row.stale_p50_ns),
    durationCell(`p50 of the rest (n ${rest_count})`, (row) => row.rest_p50_ns),
  ];
}
