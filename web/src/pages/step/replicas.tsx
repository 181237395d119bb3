/** Whether replicas, or whatever slots belong to, shared the work evenly. */
import type { Replica, StepAnswer } from "../../model/answers";
import { count, duration, number } from "../../model/format";
import { term } from "../../model/term";
import type { Asked } from "../../state/answer";
import { link } from "../../state/route";
import { Text } from "../../views/bits";
import { cell, numberCell, shareCell, textCell } from "../../views/cells";
import { Panel } from "../../views/panel";
import { type Column, Table } from "../../views/table";

export function ReplicasPanel({ asked, step }: { asked: Asked<StepAnswer>; step: number }) {
  return (
    <Panel
      title="Replicas"
      asked={asked}
      empty={({ parts }) => (parts.replicas.replicas.length ? null : "No session ran in a pool.")}
      hint={
        asked.data &&
        asked.data.parts.replicas.replicas.length > 1 &&
        `imbalance ${number(asked.data.parts.replicas.imbalance)} (busiest against the mean)`
      }
    >
      {({ parts }) => (
        <Table
          label="Replicas"
          columns={columnsOf(step, parts.path.segments[0]?.start_ns ?? 0)}
          rows={parts.replicas.replicas}
          rowKey={(row) => row.pool}
          limit={16}
        />
      )}
    </Panel>
  );
}

function columnsOf(step: number, from: number): Column<Replica>[] {
  return [
    textCell(
      "Replica",
      (row) => row.pool,
      (row) => (
        <a href={link("sessions", "", { f: `${term("pool", row.pool)} step:${step}` })}>
          <Text text={row.pool} max={30} />
        </a>
      ),
    ),
    numberCell("Sessions", (row) => row.sessions),
    shareCell("Busy", (row) => row.busy_share, "Of its slot time"),
    cell(
      "Tokens/s",
      (row) => row.tokens_per_s,
      (row) => count(Math.round(row.tokens_per_s) || null),
    ),
    cell(
      "Last end",
      (row) => row.last_end_ns,
      (row) => (row.last_end_ns === null ? "–" : duration(row.last_end_ns - from)),
      "Since the step's start",
    ),
  ];
}
