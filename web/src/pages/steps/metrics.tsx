/** Any number from step to step: what steps are summed up by, and every recorded metric. */
import type { Series, Steps, StepSummary } from "../../model/answers";
import { number, percent, visible } from "../../model/format";
import { tickLabel } from "../../model/logscale";
import { lineColour } from "../../model/palette";
import { type Asked, useAnswer } from "../../state/answer";
import { link, navigate, param, setParams } from "../../state/route";
import { Chart } from "../../views/chart";
import { Panel } from "../../views/panel";
import { wholeStep } from "./sync";

interface Scalar {
  title: string;
  read: (one: StepSummary) => number | null;
  write: (value: number) => string;
}

const SCALARS: Record<string, Scalar> = {
  reward: { title: "mean reward", read: (one) => one.mean_reward, write: number },
  tokens: { title: "tokens per second", read: (one) => one.tokens_per_s, write: number },
  wall: { title: "wall", read: (one) => one.wall_ns, write: tickLabel },
  tail: { title: "tail", read: (one) => one.tail_wall_ns, write: tickLabel },
  wait: { title: "trainer waiting", read: (one) => one.trainer_wait_ns, write: tickLabel },
  waste: { title: "waste share", read: (one) => one.waste_share, write: percent },
  lag: { title: "lag, max", read: (one) => one.lag_max, write: number },
  sessions: { title: "sessions", read: (one) => one.sessions, write: number },
};

export function MetricsPanel({ asked }: { asked: Asked<Steps> }) {
  const metrics = useAnswer("metrics", {}, { follow: false });
  const chosen = param("metric", "reward");
  const scalar = SCALARS[chosen];
  return (
    <Panel
      title="Metrics"
      asked={asked}
      empty={(data) => (data.steps.length ? null : "The run records no steps yet.")}
      actions={
        <label class="row">
          Show
          <select
            value={chosen}
            onChange={(event) =>
              setParams({ metric: event.currentTarget.value }, { replace: true })
            }
          >
            {Object.entries(SCALARS).map(([key, one]) => (
              <option key={key} value={key}>
                {one.title}
              </option>
            ))}
            {metrics.data?.metrics.map((one) => (
              <option key={one.name} value={`m:${one.name}`}>
                {visible(one.name)}
              </option>
            ))}
          </select>
        </label>
      }
    >
      {(data) =>
        scalar ? (
          <ScalarChart scalar={scalar} summaries={data.steps.map((one) => one.summary)} />
        ) : (
          <MetricChart name={chosen.slice(2)} />
        )
      }
    </Panel>
  );
}

function ScalarChart(props: { scalar: Scalar; summaries: readonly StepSummary[] }) {
  const { scalar, summaries } = props;
  const xs = summaries.map((one) => one.step ?? 0);
  return (
    <Chart
      label={`${scalar.title} by step`}
      height={160}
      xs={xs}
      series={[{ label: scalar.title, colour: "--accent", values: summaries.map(scalar.read) }]}
      xTitle="step"
      formatX={wholeStep}
      formatY={scalar.write}
      onPick={(index) => navigate(link("step", xs[index] ?? ""))}
    />
  );
}

function MetricChart({ name }: { name: string }) {
  const asked = useAnswer("series", { name, axis: "step" });
  return (
    <Panel
      title={visible(name)}
      asked={asked}
      empty={(data) => (data.lines.length ? null : "It was not recorded within any step.")}
    >
      {(data) => (
        <>
          <Chart
            label={`${visible(name)} by step`}
            height={160}
            xs={data.positions}
            series={data.lines.map((line, i) => ({
              label: labelOf(line),
              colour: lineColour(i),
              values: line.values,
            }))}
            xTitle="step"
            formatX={wholeStep}
            formatY={number}
          />
          {data.left_out > 0 && (
            <p class="dim">{data.left_out} more sets of labels are left out.</p>
          )}
        </>
      )}
    </Panel>
  );
}

function labelOf(line: Series["lines"][number]): string {
  const labels = Object.entries(line.labels).map(([key, value]) => `${key}=${value}`);
  return visible(labels.join(", ") || "all");
}
