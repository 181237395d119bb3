/** What waiting for the last sessions cost, and which of them it were. */
import { useMemo, useState } from "preact/hooks";
import type { SessionRow, Staircase, StepAnswer } from "../../model/answers";
import { duration, grouped, number, percent, plural } from "../../model/format";
import { tickLabel } from "../../model/logscale";
import { type Asked, useAnswer } from "../../state/answer";
import { Outcome, Text } from "../../views/bits";
import { Chart } from "../../views/chart";
import { cell, durationCell, textCell } from "../../views/cells";
import { Panel } from "../../views/panel";
import { SessionLink } from "../../views/sessionlink";
import { StaircaseView } from "../../views/staircase";
import { type Column, Table } from "../../views/table";
import { Assumed } from "./waits";

type StairRow = Staircase["rows"][number];

export function TailPanel(props: { asked: Asked<StepAnswer>; step: number; follow: boolean }) {
  const stairs = useAnswer("staircase", { step: props.step }, { follow: props.follow });
  const [isTable, setTable] = useState(false);
  return (
    <Panel
      title="Tail"
      hint="slots that stood idle since no session of the step was left to start"
      asked={stairs}
      empty={(data) => (data.rows.length ? null : "The step has no sessions.")}
      actions={
        <button class="link" aria-pressed={isTable} onClick={() => setTable(!isTable)}>
          {isTable ? "Picture" : "Table of sessions"}
        </button>
      }
    >
      {(data) => (
        <>
          <TailText stairs={data} answer={props.asked.data} />
          {isTable ? (
            <StairTable stairs={data} />
          ) : (
            <>
              <InFlight stairs={data} />
              <StaircaseView stairs={data} />
            </>
          )}
          {props.asked.data && <Holders answer={props.asked.data} />}
        </>
      )}
    </Panel>
  );
}

function TailText({ stairs, answer }: { stairs: Staircase; answer: StepAnswer | null }) {
  const shown = stairs.rows.length;
  return (
    <p>
      {duration(stairs.tail_wall_ns)} passed after 95 % of {plural(stairs.of, "session")} had ended;
      the tail cost {duration(stairs.bubble_ns)} of slot time
      {answer && ` (${percent(answer.parts.tail.share)})`}.{" "}
      {stairs.is_broad &&
        "A broad tail: so many sessions hold it that no few of them are to blame."}{" "}
      {shown < stairs.of && `The ${grouped(shown)} that ended last are drawn.`}{" "}
      {stairs.pools.some((one) => one.is_assumed) && <Assumed />}
    </p>
  );
}

function InFlight({ stairs }: { stairs: Staircase }) {
  const shown = useMemo(() => {
    const bins = stairs.pools[0]?.running.length ?? 0;
    const sum = (read: (pool: Staircase["pools"][number]) => number[]): number[] => {
      const total = new Array<number>(bins).fill(0);
      for (const pool of stairs.pools) read(pool).forEach((value, i) => (total[i]! += value));
      // The last value once more, so that the picture ends where the step does.
      return [...total, total[bins - 1] ?? 0];
    };
    const idle = sum((pool) => pool.idle);
    const tail = sum((pool) => pool.tail);
    return {
      xs: Array.from({ length: bins + 1 }, (_, i) => (i * stairs.bin_ns) / 1e9),
      series: [
        {
          label: "in flight",
          colour: "--accent",
          values: sum((pool) => pool.running),
        },
        { label: "idle: tail", colour: "--name-2", values: tail },
        {
          label: "idle: other",
          colour: "--line",
          values: idle.map((value, i) => value - tail[i]!),
        },
      ],
    };
  }, [stairs]);
  if (shown.xs.length < 2) return null;
  return (
    <Chart
      label="Slots in flight and idle over the step"
      kind="stack"
      height={120}
      xs={shown.xs}
      series={shown.series}
      xTitle="since the step's start"
      formatX={(x) => tickLabel(x * 1e9)}
      formatY={number}
    />
  );
}

function StairTable({ stairs }: { stairs: Staircase }) {
  const columns: Column<StairRow>[] = [
    textCell(
      "Session",
      (row) => row.session_id,
      (row) => <SessionLink session={row} id={row.session_id} />,
    ),
    durationCell("Start", (row) => row.start_ns - stairs.start_ns),
    durationCell("End", (row) => row.end_ns - stairs.start_ns),
    durationCell("Charge", (row) => row.charge_ns),
    textCell("Pool", (row) => row.pool),
    textCell(
      "Outcome",
      (row) => row.outcome,
      (row) => <Outcome outcome={row.outcome} />,
    ),
  ];
  return (
    <Table
      label="Sessions by end"
      columns={columns}
      rows={stairs.rows}
      rowKey={(row) => row.session_id}
      sort="-end"
      limit={20}
    />
  );
}

function Holders({ answer }: { answer: StepAnswer }) {
  const { holders, parts } = answer;
  if (!holders.length || parts.tail.is_broad) return null;
  const charges = new Map(parts.tail.charges.map((one) => [one.session_id, one.charge_ns]));
  const charge = (row: SessionRow): number => charges.get(row.span_id) ?? 0;
  const columns: Column<SessionRow>[] = [
    textCell(
      "Held by",
      (row) => row.task_key,
      (row) => <SessionLink session={row} id={row.span_id} />,
    ),
    cell(
      "Charged",
      charge,
      (row) => `${duration(charge(row))} (${percent(charge(row) / (parts.tail.bubble_ns || 1))})`,
      "Each idle instant is shared by the sessions that were still open",
    ),
    ranColumn,
    textCell(
      "Host",
      (row) => row.host,
      (row) => <Text text={row.host} />,
    ),
    textCell(
      "Outcome",
      (row) => row.outcome,
      (row) => <Outcome outcome={row.outcome} reason={row.reason} />,
    ),
  ];
  return (
    <Table
      label="Sessions that held the tail"
      columns={columns}
      rows={holders}
      rowKey={(row) => row.span_id}
      limit={8}
    />
  );
}

/** How long a session ran; one that is open has no length yet. */
export const ranColumn: Column<SessionRow> = cell(
  "Ran",
  (row) => (row.end_ns === null ? null : row.end_ns - row.start_ns),
  (row) => (row.end_ns === null ? "still open" : duration(row.end_ns - row.start_ns)),
);
