/** One recorded metric over the last fifteen minutes: the one that the reader chose. */
import { tickLabel } from "../../model/logscale";
import { useAnswer } from "../../state/answer";
import { remembered } from "../../state/remembered";
import { MetricChart, MetricOptions } from "../../views/metricchart";
import { Panel } from "../../views/panel";

const QUARTER_NS = 15 * 60e9;
const chosen = remembered<string>("metric", "");

export function MetricNow({ nowNs }: { nowNs: number }) {
  const asked = useAnswer("metrics", {}, { follow: false });
  const names = asked.data?.metrics.map((one) => one.name) ?? [];
  if (!names.length) return null;
  const name = names.find((one) => chosen.value === `m:${one}`);
  return (
    <Panel
      title="Metric"
      asked={asked}
      hint="of the last fifteen minutes"
      empty={() => (name ? null : "Choose a metric to see it here.")}
      actions={
        <select
          aria-label="Which metric"
          value={name ? chosen.value : ""}
          onChange={(event) => (chosen.value = event.currentTarget.value)}
        >
          <option value="">none</option>
          <MetricOptions metrics={asked.data} />
        </select>
      }
    >
      {() => (
        <MetricChart
          name={name!}
          axis="time"
          from={nowNs}
          since="before now"
          // Asked for by the quarter of an hour: the same answer grows meanwhile.
          params={{ since_ns: (Math.floor(nowNs / QUARTER_NS) - 1) * QUARTER_NS }}
          sinceNs={nowNs - QUARTER_NS}
          formatX={(x) => (x > -1 ? "now" : tickLabel(x * 1e9))}
        />
      )}
    </Panel>
  );
}
