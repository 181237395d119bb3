/** How long weight sync took, where, and what it held up. */
import type { StepAnswer, SyncLane, SyncSplit } from "../../model/answers";
import { duration, visible } from "../../model/format";
import type { Asked } from "../../state/answer";
import { durationCell, textCell } from "../../views/cells";
import { Panel } from "../../views/panel";
import { type Share, SplitBar } from "../../views/splitbar";
import { type Column, Table } from "../../views/table";

export function SyncPanel({ asked }: { asked: Asked<StepAnswer> }) {
  return (
    <Panel
      title="Weight sync"
      asked={asked}
      empty={({ parts }) =>
        parts.sync.total_ns ? null : "No weight sync is recorded in this step."
      }
    >
      {({ parts: { sync } }) => (
        <>
          <SplitBar label="Weight sync" total={sync.total_ns} shares={partsOf(sync)} />
          <p>
            {duration(sync.blocked_ns)} of slot time stood idle for it; sessions in flight meanwhile
            held {duration(sync.in_flight_ns)}.
            {sync.slowest !== null && ` Slowest: ${visible(sync.slowest)}.`}
          </p>
          {sync.lanes.length > 1 && (
            <Table
              label="Weight sync by lane"
              columns={LANES}
              rows={sync.lanes}
              rowKey={(row) => row.lane}
              sort="-total"
              limit={8}
            />
          )}
        </>
      )}
    </Panel>
  );
}

function partsOf(split: SyncSplit): Share[] {
  return [
    { label: "pause", value: split.pause_ns, colour: "--role-waiting", texture: "hatched" },
    { label: "transfer", value: split.transfer_ns, colour: "--role-sync", texture: "dotted" },
    { label: "resume", value: split.resume_ns, colour: "--name-2" },
    { label: "other", value: split.rest_ns, colour: "--role-other" },
  ];
}

const LANES: readonly Column<SyncLane>[] = [
  textCell("Lane", (row) => row.lane),
  durationCell("Total", (row) => row.total_ns),
  durationCell("Pause", (row) => row.pause_ns),
  durationCell("Transfer", (row) => row.transfer_ns),
  durationCell("Resume", (row) => row.resume_ns),
  durationCell("Other", (row) => row.rest_ns),
];
