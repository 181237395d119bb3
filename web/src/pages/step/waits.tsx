/** Who waited: the trainer for its batch, or slots for something to do. */
import type { IdleSplit, PoolIdle, StepAnswer } from "../../model/answers";
import { duration, visible } from "../../model/format";
import { term } from "../../model/term";
import type { Asked } from "../../state/answer";
import { link } from "../../state/route";
import { Badge } from "../../views/bits";
import { numberCell, shareCell, textCell } from "../../views/cells";
import { Panel } from "../../views/panel";
import { SplitBar } from "../../views/splitbar";
import { idleShare, slotShares, trainerShares } from "../../views/waitshares";
import { type Column, Table } from "../../views/table";

export function WaitsPanel({ asked, step }: { asked: Asked<StepAnswer>; step: number }) {
  return (
    <Panel title="Who waits" asked={asked}>
      {({ parts: { trainer, idle } }) => (
        <>
          <div class="columns">
            <div>
              <h3>
                Trainer <span class="dim">{duration(trainer.wall_ns)}</span>
              </h3>
              <SplitBar
                label="Trainer time"
                total={trainer.wall_ns}
                shares={trainerShares(trainer)}
              />
            </div>
            <div>
              <h3>
                Slots <span class="dim">{duration(idle.total_ns)} of slot time</span>{" "}
                {idle.assumed && <Assumed />}
              </h3>
              <SplitBar label="Slot time" total={idle.total_ns} shares={slotShares(idle, step)} />
            </div>
          </div>
          {idle.pools.length > 1 && (
            <details>
              <summary>Each of {idle.pools.length} pools</summary>
              <PoolTable idle={idle} step={step} />
            </details>
          )}
        </>
      )}
    </Panel>
  );
}

export function Assumed() {
  return (
    <Badge title="No slots are declared: the most ever in flight stands for the capacity">
      assumed
    </Badge>
  );
}

function PoolTable({ idle, step }: { idle: IdleSplit; step: number }) {
  const causes = Object.keys(idle.idle_ns).filter((cause) => (idle.idle_ns[cause] ?? 0) > 0);
  const columns: Column<PoolIdle>[] = [
    textCell(
      "Pool",
      (row) => row.pool,
      (row) => (
        <a href={link("sessions", "", { f: `${term("pool", row.pool)} step:${step}` })}>
          {visible(row.pool) || "no pool"}
        </a>
      ),
    ),
    numberCell("Slots", (row) => row.capacity),
    part("Busy", (row) => row.busy_ns),
    ...causes.map((cause) => part(idleShare(cause, 0).label, (row) => row.idle_ns[cause] ?? 0)),
  ];
  return (
    <Table label="Slots by pool" columns={columns} rows={idle.pools} rowKey={(row) => row.pool} />
  );
}

/** A part of each pool's slot time. */
function part(title: string, read: (row: PoolIdle) => number): Column<PoolIdle> {
  return shareCell(title, (row) => read(row) / (row.total_ns || 1));
}
