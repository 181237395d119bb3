/** The ten sessions that took longest. */
import type { SessionRow, StepAnswer } from "../../model/answers";
import type { Asked } from "../../state/answer";
import { link } from "../../state/route";
import { Outcome } from "../../views/bits";
import { countCell, durationCell, numberCell, rewardCell, textCell } from "../../views/cells";
import { Panel } from "../../views/panel";
import { SessionLink } from "../../views/sessionlink";
import { type Column, Table } from "../../views/table";
import { ranColumn } from "./tail";

export function SlowestPanel({ asked, step }: { asked: Asked<StepAnswer>; step: number }) {
  return (
    <Panel
      title="Ten slowest"
      asked={asked}
      empty={({ slowest }) => (slowest.length ? null : "The step has no sessions.")}
      actions={<a href={link("sessions", "", { f: `step:${step}`, sort: "-ran" })}>All</a>}
    >
      {({ slowest }) => (
        <Table label="Ten slowest" columns={COLUMNS} rows={slowest} rowKey={(row) => row.span_id} />
      )}
    </Panel>
  );
}

const COLUMNS: readonly Column<SessionRow>[] = [
  textCell(
    "Session",
    (row) => row.task_key,
    (row) => <SessionLink session={row} id={row.span_id} />,
  ),
  ranColumn,
  durationCell("Waited", (row) => row.waited_ns),
  numberCell("Turns", (row) => row.turns),
  countCell("Tokens", (row) => row.tokens_out),
  rewardCell("Reward", (row) => row.reward),
  textCell(
    "Outcome",
    (row) => row.outcome,
    (row) => <Outcome outcome={row.outcome} />,
  ),
];
