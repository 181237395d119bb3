/** Any number from step to step: what steps are summed up by, and every recorded metric. */
import type { Overview, Steps, StepSummary } from "../../model/answers";
import { number, percent, wholeStep } from "../../model/format";
import { tickLabel } from "../../model/logscale";
import type { Axis } from "../../model/metriclines";
import { isImported } from "../../model/origin";
import { type Asked, useAnswer } from "../../state/answer";
import { link, navigate, param, setParams } from "../../state/route";
import { Chart } from "../../views/chart";
import { Choice } from "../../views/choice";
import { MetricChart, MetricOptions } from "../../views/metricchart";
import { Panel } from "../../views/panel";

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
const AXES: readonly [Axis, string][] = [
  ["step", "Step"],
  ["time", "Time"],
];

export function MetricsPanel({ asked, overview }: { asked: Asked<Steps>; overview: Overview }) {
  const metrics = useAnswer("metrics", {}, { follow: false });
  const chosen = param("metric", "reward");
  const axis = param("axis") === "time" ? "time" : "step";
  const scalar = SCALARS[chosen];
  return (
    <Panel
      title="Metrics"
      asked={asked}
      empty={(data) => (data.steps.length || !scalar ? null : "The run records no steps yet.")}
      actions={
        <>
          {!scalar && (
            <Choice
              label="Along"
              options={AXES}
              chosen={axis}
              onChoose={(next) =>
                setParams({ axis: next === "time" ? next : null }, { replace: true })
              }
            />
          )}
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
              <MetricOptions metrics={metrics.data} />
            </select>
          </label>
        </>
      }
    >
      {(data) => (
        <>
          {scalar ? (
            <ScalarChart scalar={scalar} summaries={data.steps.map((one) => one.summary)} />
          ) : (
            <MetricChart
              name={chosen.slice(2)}
              axis={axis}
              from={overview.first_ns}
              since="since the run's start"
            />
          )}
          {metrics.data?.metrics.length === 0 && !isImported(overview) && (
            <p class="dim">
              Your own numbers show here too: <code>rollscope.gauge("kl", 0.02)</code>
            </p>
          )}
        </>
      )}
    </Panel>
  );
}

function ScalarChart(props: { scalar: Scalar; summaries: readonly StepSummary[] }) {
  const { scalar, summaries } = props;
  const xs = summaries.map((one) => one.step ?? 0);
  const values = summaries.map(scalar.read);
  if (values.every((one) => one === null)) return <p class="dim">No {scalar.title} is known.</p>;
  return (
    <Chart
      label={`${scalar.title} by step`}
      height={160}
      xs={xs}
      series={[{ label: scalar.title, colour: "--accent", values }]}
      xTitle="step"
      formatX={wholeStep}
      formatY={scalar.write}
      onPick={(index) => navigate(link("step", xs[index] ?? ""))}
    />
  );
}
