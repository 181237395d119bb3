/** What inference engines say of themselves over some time; nothing where nobody asks them. */
import { useState } from "preact/hooks";
import type { EngineLine } from "../model/answers";
import { number, percent } from "../model/format";
import { tickLabel } from "../model/logscale";
import { lineColour } from "../model/palette";
import { useAnswer } from "../state/answer";
import { Chart } from "./chart";
import { Choice } from "./choice";
import { Panel } from "./panel";

type Told = Exclude<keyof EngineLine, "replica">;

const TOLD: [Told, string][] = [
  ["kv_use", "KV in use"],
  ["running", "Running"],
  ["waiting", "Waiting"],
  ["preempted", "Preempted"],
  ["prefix_hits", "Prefix hits"],
  ["tokens_per_s", "Tokens/s"],
];

/** @param from the time that positions are counted from, named by `since` */
export function EnginesPanel(props: {
  params: Record<string, string | number>;
  from: number;
  since: string;
}) {
  const asked = useAnswer("engines", props.params);
  const [told, tell] = useState<Told>("kv_use");
  if (!asked.data?.lines.length) return null;
  const title = TOLD.find((one) => one[0] === told)![1];
  return (
    <Panel
      title="Engines"
      asked={asked}
      actions={<Choice label="Show" options={TOLD} chosen={told} onChoose={tell} />}
    >
      {({ positions, width_ns, lines }) => (
        <Chart
          label={`${title} by replica`}
          height={120}
          xs={positions.map((at) => (at + width_ns / 2 - props.from) / 1e9)}
          series={lines.map((line, i) => ({
            label: line.replica,
            colour: lineColour(i),
            values: line[told],
          }))}
          xTitle={props.since}
          formatX={(x) => tickLabel(x * 1e9)}
          formatY={told === "kv_use" || told === "prefix_hits" ? percent : number}
        />
      )}
    </Panel>
  );
}
