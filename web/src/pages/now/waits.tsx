/** Who waits for whom, in the running step and the one before: the trainer, or the slots. */
import type { StepWaits } from "../../model/answers";
import { duration, grouped, percent } from "../../model/format";
import { link } from "../../state/route";
import { Age, type AsOf } from "../../views/age";
import { Badge } from "../../views/bits";
import { SplitBar } from "../../views/splitbar";
import { slotShares, trainerShares } from "../../views/waitshares";

export function Waits({ waits, at }: { waits: readonly StepWaits[]; at: AsOf }) {
  return (
    <div class="columns">
      {waits.map((one) => (
        <StepPart key={one.step} waits={one} at={at} />
      ))}
    </div>
  );
}

function StepPart({ waits, at }: { waits: StepWaits; at: AsOf }) {
  return (
    <section class="waits">
      <h3 class="row">
        <a href={link("step", waits.step)}>Step {waits.step}</a>
        <span class="dim">
          {waits.is_running ? (
            <>
              running for <Age ns={waits.wall_ns} at={at} />
            </>
          ) : (
            `over, took ${duration(waits.wall_ns)}`
          )}
        </span>
        {waits.is_assumed && (
          <Badge title="No pool declares its slots: the most ever seen at once">
            capacity assumed
          </Badge>
        )}
      </h3>
      <p>
        Trainer waiting <b>{percent(waits.trainer_wait_share)}</b>
      </p>
      <SplitBar
        label="Trainer time"
        total={waits.trainer.wall_ns}
        shares={trainerShares(waits.trainer)}
      />
      <p>
        Rollout slots idle <b>{percent(waits.idle_share)}</b>
      </p>
      <SplitBar label="Slot time" total={waits.slot_ns} shares={slotShares(waits, waits.step)} />
      <Facts waits={waits} />
    </section>
  );
}

function Facts({ waits }: { waits: StepWaits }) {
  const { buffered, lag_p50, lag_max } = waits;
  return (
    <dl class="facts">
      <div title="Accepted sessions of the step that nobody has consumed yet">
        <dt>Buffer</dt>
        <dd>{buffered === null ? "not recorded" : `${grouped(buffered)} waiting`}</dd>
      </div>
      <div title="Versions behind the newest, of its sessions">
        <dt>Version lag</dt>
        <dd>{lag_p50 === null ? "not recorded" : `p50 ${lag_p50}, at most ${lag_max ?? "–"}`}</dd>
      </div>
    </dl>
  );
}
