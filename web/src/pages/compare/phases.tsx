/** Phase by phase on both sides: how much longer or shorter, how sure, and of what shape. */
import type { PhaseComparison, Ranks } from "../../model/answers";
import { duration, grouped, visible } from "../../model/format";
import { tickLabel } from "../../model/logscale";
import { type Asked, useAnswer } from "../../state/answer";
import { param, setParams } from "../../state/route";
import { Text } from "../../views/bits";
import { cell, numberCell, textCell } from "../../views/cells";
import { Chart } from "../../views/chart";
import { Panel } from "../../views/panel";
import { type Column, Table } from "../../views/table";
import type { Compared } from "./page";

/** Runs, or stretches of steps: A is this run, B the other. */
export function ComparedScopes({ compared }: { compared: Compared }) {
  const { other, stepsA, stepsB } = compared;
  const params = { scope: stepsA || "all", other, other_scope: stepsB || "all" };
  const asked = useAnswer("compare", params, { follow: false });
  const { first_sessions, second_sessions, sampled } = asked.data ?? {};
  const some = sampled?.length ? `; not all calls are taken of ${sampled.join(", ")}` : "";
  return (
    <PhasesPanel
      asked={asked}
      sizes={`${grouped(first_sessions ?? 0)}, B: ${grouped(second_sessions ?? 0)}${some}`}
    />
  );
}

/** Selections: A is the rest, or what the chosen ones are held against; B is the chosen ones. */
export function ComparedSelections({ compared: { filterA, filterB } }: { compared: Compared }) {
  const params = { scope: "all", filter: filterA, against: filterB };
  const asked = useAnswer("select", params, { follow: false });
  return (
    <PhasesPanel
      asked={asked}
      sizes={`${grouped(asked.data?.rest ?? 0)}, B, these: ${grouped(asked.data?.chosen ?? 0)}`}
    />
  );
}

function PhasesPanel(props: { asked: Asked<{ phases: PhaseComparison[] }>; sizes: string }) {
  return (
    <Panel
      title="Phases"
      asked={props.asked}
      hint={props.asked.data && `sessions of A: ${visible(props.sizes)}; differences are B less A`}
      empty={({ phases }) => (phases.length ? null : "No session is over.")}
    >
      {({ phases }) => {
        const chosen = phases.find((one) => one.name === param("phase")) ?? phases[0]!;
        return (
          <>
            <Table
              label="Phases of both sides"
              columns={COLUMNS}
              rows={phases}
              rowKey={(row) => row.name}
              isChosen={(row) => row === chosen}
            />
            <Quantiles phase={chosen} />
          </>
        );
      }}
    </Panel>
  );
}

type Percentile = "p50_ns" | "p95_ns" | "p99_ns";

/** A percentile; the maximum, and that it is that, where too few values carry one. */
function rank(ranks: Ranks, key: Percentile): string {
  if (ranks[key] !== null || ranks.max_ns === null) return duration(ranks[key]);
  return `max ${duration(ranks.max_ns)}`;
}

function percentile(title: string): Column<PhaseComparison> {
  const key = `${title}_ns` as Percentile;
  return cell(
    `${title} A → B`,
    (row) => row.second[key],
    (row) => `${rank(row.first, key)} → ${rank(row.second, key)}`,
  );
}

function signed(ns: number | null): string {
  return ns !== null && ns > 0 ? `+${duration(ns)}` : duration(ns);
}

const COLUMNS: readonly Column<PhaseComparison>[] = [
  textCell(
    "Phase",
    (row) => row.name,
    ({ name }) => (
      <button class="link" onClick={() => setParams({ phase: name }, { replace: true })}>
        <Text text={name} />
      </button>
    ),
  ),
  cell(
    "n A → B",
    (row) => row.second.count,
    (row) => `${grouped(row.first.count)} → ${grouped(row.second.count)}`,
  ),
  ...["p50", "p95", "p99"].map(percentile),
  cell(
    "Difference",
    (row) => row.difference_ns,
    ({ difference_ns, low_ns, high_ns }) =>
      signed(difference_ns) + (low_ns === null ? "" : ` (${signed(low_ns)} to ${signed(high_ns)})`),
    "of the medians, with its 95 % interval",
  ),
  numberCell("Effect", (row) => row.effect, "Cliff's delta, from −1 to 1"),
  textCell(
    "Reads",
    (row) => row.text,
    (row) => <span class={row.is_clear ? "" : "dim"}>{reads(row)}</span>,
  ),
];

/** Give its sentence with the minus of the numbers beside it. */
function reads({ text }: PhaseComparison): string {
  return text.replace(/-(?=\d)/g, "−");
}

function Quantiles({ phase }: { phase: PhaseComparison }) {
  const { first_deciles_ns: xs, second_deciles_ns, line_ns } = phase;
  return (
    <>
      <h3 class="quantiles">
        Deciles of <Text text={phase.name} />: {reads(phase)}
      </h3>
      {line_ns.length ? (
        <Chart
          label={`Deciles of ${visible(phase.name)}, B against A`}
          kind="points"
          height={220}
          xs={xs}
          xTitle="A"
          series={[
            { label: "B", colour: "--role-generate", values: second_deciles_ns },
            { label: "robust line", colour: "--role-reward", values: line_ns, isLimit: true },
            { label: "no difference", colour: "--role-other", values: xs, isLimit: true },
          ]}
          formatX={tickLabel}
          formatY={tickLabel}
        />
      ) : (
        <p class="dim">Each side needs twenty values for that.</p>
      )}
    </>
  );
}
