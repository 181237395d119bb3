/** How long sessions and phases took, and a way to ask what is different about some of them. */
import { useState } from "preact/hooks";
import type { Durations, Overview, StepAnswer } from "../../model/answers";
import { duration, grouped, plural, visible } from "../../model/format";
import { colourVariable } from "../../model/palette";
import { lengthTerm } from "../../model/term";
import { type Asked, useAnswer } from "../../state/answer";
import { link, param, setParams } from "../../state/route";
import { Chart } from "../../views/chart";
import { Choice } from "../../views/choice";
import { HeatMapView } from "../../views/heatmap";
import { numberCell, textCell } from "../../views/cells";
import { roleOf } from "../../views/nameshare";
import { Panel } from "../../views/panel";
import type { Region } from "../../views/plane";
import { PointsView } from "../../views/points";
import { idsTerm } from "../../views/sessionlink";
import { type Column, Table } from "../../views/table";
import { DifferencePanel, type Preset } from "./difference";
import { formatRegion, parseRegion } from "./region";

type View = "heat" | "histogram" | "points" | "table";
const VIEWS: readonly [View, string][] = [
  ["heat", "Heat map"],
  ["histogram", "Histogram"],
  ["points", "Points"],
  ["table", "Table"],
];

export function DurationsPanel(props: {
  asked: Asked<StepAnswer>;
  scope: string;
  overview: Overview;
  follow: boolean;
}) {
  const { scope, overview, follow } = props;
  const asked = useAnswer("durations", { scope }, { follow });
  const view = param("view", "heat");
  const region = parseRegion(param("box"));
  const onRegion = (next: Region): void =>
    setParams({ box: formatRegion(next), which: null }, { replace: true });
  return (
    <>
      <Panel
        title="Durations"
        asked={asked}
        empty={(data) =>
          data.heat.counts.length ? null : "No session of the step has ended, so none has a length."
        }
        hint={asked.data && <Lines durations={asked.data} />}
        actions={
          <Choice
            label="Show durations as"
            options={VIEWS}
            chosen={view}
            onChoose={(next) =>
              setParams({ view: next === "heat" ? null : next }, { replace: true })
            }
          />
        }
      >
        {(data) =>
          view === "histogram" ? (
            <Histogram durations={data} overview={overview} />
          ) : view === "points" ? (
            <PointsView durations={data} region={region} onRegion={onRegion} />
          ) : view === "table" ? (
            <LengthTable durations={data} />
          ) : (
            <HeatMapView heat={data.heat} region={region} onRegion={onRegion} />
          )
        }
      </Panel>
      <DifferencePanel scope={scope} region={region} presets={presetsOf(props.asked.data)} />
    </>
  );
}

/** Percentiles, each of which is a session and opens it. */
export function Lines({ durations }: { durations: Pick<Durations, "lines" | "points"> }) {
  const count = durations.lines[0]?.count ?? 0;
  return (
    <>
      {durations.lines.map((line) => (
        <span key={line.percent}>
          <a href={link("session", line.session_id)}>
            p{line.percent} {duration(line.ran_ns)}
          </a>{" "}
        </span>
      ))}
      n {grouped(count)}
      {durations.points.of > durations.points.sessions.length &&
        `; points are ${grouped(durations.points.sessions.length)} of ${plural(durations.points.of, "session")}`}
    </>
  );
}

/** Selections that need no pointer. */
function presetsOf(step: StepAnswer | null): Preset[] {
  const presets: Preset[] = [["failed", "Failed", "outcome:failed,timeout"]];
  const lengths = step?.parts.waste.selection.find((one) => one.measure === "duration");
  const upto = lengths?.deciles[8]?.upto;
  if (upto !== undefined) presets.unshift(["slow", "Slowest tenth", lengthTerm("ran", ">", upto)]);
  const holders = step?.parts.tail.holders ?? [];
  if (holders.length) presets.push(["tail", "Held the tail", idsTerm(holders)]);
  return presets;
}

function Histogram({ durations, overview }: { durations: Durations; overview: Overview }) {
  const [name, setName] = useState("session");
  const { histograms, length_edges_ns: edges } = durations;
  const chosen = histograms.find((one) => one.name === name) ?? histograms[0];
  if (!chosen) return null;
  return (
    <>
      <label class="row">
        Phase
        <select value={chosen.name} onChange={(event) => setName(event.currentTarget.value)}>
          {histograms.map((one) => (
            <option key={one.name} value={one.name}>
              {visible(one.name)} (n {grouped(one.count)})
            </option>
          ))}
        </select>
      </label>
      <Chart
        label={`Durations of ${visible(chosen.name)}`}
        kind="bars"
        height={190}
        xs={chosen.counts.map((_, i) => i)}
        series={[
          {
            label: visible(chosen.name),
            colour:
              chosen.name === "session"
                ? "--role-generate"
                : colourVariable(chosen.name, roleOf(overview, chosen.name)),
            values: chosen.counts,
          },
        ]}
        xTitle="from"
        formatX={(x) => (Number.isInteger(x) ? duration(edges[x]) : "")}
      />
    </>
  );
}

interface LengthRow {
  low: number;
  high: number;
  count: number;
  flagged: number;
}

function LengthTable({ durations: { heat } }: { durations: Durations }) {
  const sum = (values: readonly number[]): number => values.reduce((total, one) => total + one, 0);
  const rows = heat.counts.map((line, i) => ({
    low: heat.length_edges_ns[i]!,
    high: heat.length_edges_ns[i + 1]!,
    count: sum(line),
    flagged: sum(heat.flagged[i] ?? []),
  }));
  const columns: Column<LengthRow>[] = [
    textCell(
      "Ran from",
      (row) => row.low,
      (row) => duration(row.low),
    ),
    textCell(
      "to",
      (row) => row.high,
      (row) => duration(row.high),
    ),
    numberCell("Sessions", (row) => row.count),
    numberCell("Went wrong", (row) => row.flagged),
  ];
  return (
    <Table label="Durations" columns={columns} rows={rows} rowKey={(row) => String(row.low)} />
  );
}
