/** What more or fewer slots would have bought. */
import type { Replay, StepAnswer } from "../../model/answers";
import { tickLabel } from "../../model/logscale";
import type { Asked } from "../../state/answer";
import { Chart } from "../../views/chart";
import { durationCell, numberCell, shareCell } from "../../views/cells";
import { Panel } from "../../views/panel";
import { type Column, Table } from "../../views/table";
import { Assumed } from "./waits";

export function WhatIfPanel({ asked }: { asked: Asked<StepAnswer> }) {
  return (
    <Panel
      title="What if"
      hint="the step's sessions again, in their order, on other numbers of slots"
      asked={asked}
      empty={({ what_if }) => (what_if.replays.length ? null : "There are no sessions to replay.")}
    >
      {({ what_if }) =>
        what_if.cannot_tell ? (
          <p>
            Cannot be told: a replay on the same slots does not give the same time, or sessions have
            not ended.
          </p>
        ) : (
          <>
            <Chart
              label="Wall time by slots"
              kind="line"
              height={130}
              xs={what_if.replays.map((one) => one.slots)}
              series={[
                {
                  label: "wall",
                  colour: "--role-generate",
                  values: what_if.replays.map((one) => one.wall_ns / 1e9),
                },
              ]}
              xTitle="slots"
              formatX={(x) => String(Math.round(x))}
              formatY={(y) => tickLabel(y * 1e9)}
            />
            <Table
              label="What if"
              columns={COLUMNS}
              rows={what_if.replays}
              rowKey={(row) => String(row.factor)}
            />
            <p class="dim">
              It assumes that sessions take as long as they did. {what_if.assumed && <Assumed />}
            </p>
          </>
        )
      }
    </Panel>
  );
}

const COLUMNS: readonly Column<Replay>[] = [
  numberCell("Slots ×", (row) => row.factor),
  numberCell("Slots", (row) => row.slots),
  durationCell("Rollout", (row) => row.rollout_ns),
  durationCell("Wall", (row) => row.wall_ns),
  shareCell("Slot use", (row) => row.use),
];
