/** The steps, one a row: how long, how unusual, and why in a few words. */
import type { StepLine, Steps } from "../../model/answers";
import { change, count, grouped, visible } from "../../model/format";
import type { Asked } from "../../state/answer";
import { link, navigate, param, setParams } from "../../state/route";
import { Badge, Sentence } from "../../views/bits";
import { cell, durationCell, rewardCell, shareCell, textCell } from "../../views/cells";
import { Panel } from "../../views/panel";
import { type Column, Table } from "../../views/table";

export function ListPanel({ asked }: { asked: Asked<Steps> }) {
  return (
    <Panel
      title="List"
      asked={asked}
      hint={asked.data && hint(asked.data)}
      empty={(data) => (data.steps.length ? null : "The run records no steps yet.")}
    >
      {(data) => (
        <Table
          label="Steps"
          columns={COLUMNS}
          rows={data.steps}
          rowKey={(row) => String(row.summary.step)}
          sort={param("sort", "-step")}
          onSort={(sort) => setParams({ sort }, { replace: true })}
          onOpen={(row) => navigate(link("step", row.summary.step ?? ""))}
          limit={20}
        />
      )}
    </Panel>
  );
}

function hint(data: Steps): string {
  const shown = `${data.steps.length} of ${data.of} steps`;
  return data.unassigned > 0
    ? `${shown}; ${data.unassigned} sessions belong to no step (unassigned)`
    : shown;
}

/** The first cause in few words; what limits trust is no cause. */
function short(row: StepLine): { rule: string; sentence: string } {
  const cause = row.verdict.findings.find((one) => one.stake_ns > 0);
  if (cause) return { rule: cause.rule, sentence: cause.sentence };
  return { rule: "", sentence: row.verdict.closing ?? "" };
}

const COLUMNS: readonly Column<StepLine>[] = [
  textCell(
    "Step",
    (row) => row.summary.step,
    ({ summary }) => (
      <span class="nowrap">
        <a href={link("step", summary.step ?? "")}>{summary.step}</a>{" "}
        {summary.is_open && <Badge tone="warn">running</Badge>}
      </span>
    ),
  ),
  durationCell("Wall", (row) => row.summary.wall_ns),
  cell(
    "Change",
    (row) => row.change,
    (row) => (
      <span class={(row.change ?? 0) >= 0.1 ? "bad nowrap" : "nowrap"}>{change(row.change)}</span>
    ),
    "Against the median of the previous ten",
  ),
  textCell(
    "Verdict",
    (row) => short(row).sentence,
    (row) => (
      <span>
        {short(row).rule && <Badge>{short(row).rule}</Badge>}{" "}
        <Sentence text={short(row).sentence} max={90} />
      </span>
    ),
  ),
  textCell(
    "Outcomes",
    (row) => row.summary.sessions,
    ({ summary }) => (
      <span title={outcomes(summary.outcomes)}>
        {summary.sessions
          ? `${grouped(summary.outcomes["accepted"] ?? 0)} of ${grouped(summary.sessions)}`
          : "–"}
        <span class="dim">
          {also(wrong(summary.outcomes), "failed")}
          {also(summary.outcomes["open"], "open")}
          {also(summary.outcomes["lost"], "lost")}
        </span>
      </span>
    ),
    "Accepted of all; hover for each",
  ),
  durationCell("Tail", (row) => row.summary.tail_wall_ns, "After 95 % of the sessions had ended"),
  shareCell(
    "Trainer waits",
    ({ summary }) => summary.trainer_wait_ns / (summary.wall_ns || 1),
    "Of the wall",
  ),
  shareCell(
    "Waste",
    ({ summary }) => summary.waste_share,
    "Of the slot time of sessions that are over",
  ),
  cell(
    "Lag p50 / max",
    (row) => row.summary.lag_max,
    ({ summary }) =>
      summary.lag_max === null ? "–" : `${summary.lag_p50 ?? "–"} / ${summary.lag_max}`,
    "Versions at consume",
  ),
  cell(
    "Tokens/s",
    (row) => row.summary.tokens_per_s,
    (row) => count(Math.round(row.summary.tokens_per_s) || null),
  ),
  rewardCell("Reward", (row) => row.summary.mean_reward),
];

function outcomes(counts: Record<string, number>): string {
  return Object.entries(counts)
    .map(([name, value]) => `${visible(name)} ${value}`)
    .join(", ");
}

function also(value = 0, word: string): string {
  return value > 0 ? `, ${grouped(value)} ${word}` : "";
}

function wrong(counts: Record<string, number>): number {
  return (counts["failed"] ?? 0) + (counts["timeout"] ?? 0);
}
