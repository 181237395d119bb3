/** How long weight sync took from step to step. */
import type { StepSeries, SyncStep } from "../../model/answers";
import { wholeStep } from "../../model/format";
import { tickLabel } from "../../model/logscale";
import type { Asked } from "../../state/answer";
import { link, navigate } from "../../state/route";
import { Chart } from "../../views/chart";
import { Panel } from "../../views/panel";

const PARTS: readonly [string, string, (one: SyncStep) => number][] = [
  ["pause", "--role-waiting", (one) => one.pause_ns],
  ["transfer", "--role-train", (one) => one.transfer_ns],
  ["resume", "--name-2", (one) => one.resume_ns],
  ["other", "--role-other", (one) => one.rest_ns],
];

export function SyncByStep({ asked }: { asked: Asked<StepSeries> }) {
  return (
    <Panel
      title="Weight sync by step"
      asked={asked}
      empty={(data) =>
        data.sync.some((one) => one.total_ns > 0) ? null : "No weight sync is recorded."
      }
    >
      {(data) => (
        <Chart
          label="Weight sync by step"
          kind="stack"
          height={140}
          xs={data.steps}
          series={PARTS.map(([label, colour, read]) => ({
            label,
            colour,
            values: data.sync.map((one) => read(one) / 1e9),
          }))}
          xTitle="step"
          formatX={wholeStep}
          formatY={(y) => tickLabel(y * 1e9)}
          onPick={(index) => navigate(link("step", data.steps[index] ?? ""))}
        />
      )}
    </Panel>
  );
}
