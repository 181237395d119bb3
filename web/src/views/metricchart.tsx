/** A recorded metric along steps or time: a line for each set of labels, its range around it. */
import type { Metrics } from "../model/answers";
import { number, visible, wholeStep } from "../model/format";
import { tickLabel } from "../model/logscale";
import { type Axis, metricLines } from "../model/metriclines";
import { lineColour } from "../model/palette";
import type { Params } from "../model/source";
import { useAnswer } from "../state/answer";
import { Chart } from "./chart";
import { Panel } from "./panel";

/** As many as the timeline asks for, so that one answer serves both. */
const POINTS = 600;

export function MetricChart(props: {
  name: string;
  axis: Axis;
  /** The time that is counted from, named by `since`. */
  from: number;
  since: string;
  params?: Params;
  /** What is earlier is left out. */
  sinceNs?: number;
  formatX?: (x: number) => string;
}) {
  const { name, axis, params, from, sinceNs } = props;
  const isTime = axis === "time";
  const asked = useAnswer("series", { name, axis, ...(isTime && { points: POINTS }), ...params });
  return (
    <Panel
      title={visible(name)}
      asked={asked}
      empty={(data) =>
        data.lines.length
          ? null
          : `It was not recorded ${isTime ? "in this time" : "within any step"}.`
      }
    >
      {(data) => {
        const { xs, lines, says } = metricLines(data, from, sinceNs);
        return (
          <>
            <Chart
              label={`${visible(name)} by ${axis}`}
              height={160}
              xs={xs}
              series={lines.map((line, i) => ({ ...line, colour: lineColour(i), isJoined: true }))}
              xTitle={isTime ? props.since : axis}
              formatX={props.formatX ?? (isTime ? (x) => tickLabel(x * 1e9) : wholeStep)}
              formatY={number}
            />
            <p class="dim">
              {says.join(" ")}
              {data.left_out > 0 && ` ${data.left_out} more sets of labels are left out.`}
            </p>
          </>
        );
      }}
    </Panel>
  );
}

/** The names to choose from. */
export function MetricOptions({ metrics }: { metrics: Metrics | null }) {
  return (
    <>
      {[...new Set(metrics?.metrics.map((one) => one.name))].map((name) => (
        <option key={name} value={`m:${name}`}>
          {visible(name)}
        </option>
      ))}
    </>
  );
}
