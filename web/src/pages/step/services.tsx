/** Tools, reward functions and environments: is one of them the bottleneck? */
import type { Services } from "../../model/answers";
import { number, percent, visible } from "../../model/format";
import { term } from "../../model/term";
import { useAnswer } from "../../state/answer";
import { link } from "../../state/route";
import { Swatch, Text } from "../../views/bits";
import { cell, countCell, durationCell, numberCell, textCell } from "../../views/cells";
import { Panel } from "../../views/panel";
import { type Column, Table } from "../../views/table";

type Line = Services["lines"][number];

export function ServicesPanel({ scope, follow }: { scope: string; follow: boolean }) {
  const asked = useAnswer("services", { scope }, { follow });
  return (
    <Panel
      title="Services"
      hint="tools, rewards and environments: how long calls queue, and how long they are served"
      asked={asked}
      empty={(data) =>
        data.lines.length ? null : "No tool, reward or environment was called in this step."
      }
    >
      {(data) => (
        <Table
          label="Services"
          columns={columnsOf(scope)}
          rows={data.lines}
          rowKey={(row) => `${row.name} ${row.detail ?? ""}`}
          limit={12}
        />
      )}
    </Panel>
  );
}

function columnsOf(step: string): Column<Line>[] {
  return [
    textCell(
      "Service",
      (row) => `${row.name} ${row.detail ?? ""}`,
      (row) => (
        <a href={link("sessions", "", { f: filterOf(row, step) })}>
          <Swatch name={row.name} role={row.role} />{" "}
          <Text text={`${row.name}${row.detail ? ` ${row.detail}` : ""}`} max={40} />
        </a>
      ),
    ),
    countCell("Calls", (row) => row.calls),
    durationCell("Queue p50", (row) => row.queue_p50_ns, "Of calls that say how long they waited"),
    durationCell("Queue p95", (row) => row.queue_p95_ns, "Needs 20 such calls"),
    durationCell(
      "Service p50",
      (row) => row.service_p50_ns,
      "Without queueing where that is known",
    ),
    durationCell("Service p95", (row) => row.service_p95_ns, "Needs 20 calls"),
    durationCell("Service p99", (row) => row.service_p99_ns, "Needs 100 calls"),
    durationCell("Max", (row) => row.service_max_ns),
    cell(
      "Busy",
      (row) => row.busy_share,
      (row) => (
        <span title={`${number(row.mean_open)} open on average`}>{percent(row.busy_share)}</span>
      ),
      "Of the time in which at least one call was open",
    ),
    numberCell("Retries", (row) => row.retries),
    numberCell("Timeouts", (row) => row.timeouts),
    cell(
      "Errors",
      (row) => row.errors,
      (row) =>
        row.errors ? (
          <span>
            {row.errors} <span class="dim">{kinds(row)}</span>
          </span>
        ) : (
          "0"
        ),
    ),
  ];
}

function filterOf(row: Line, step: string): string {
  const detail = row.detail === null ? "" : ` ${term("detail", row.detail)}`;
  return `${term("phase", row.name)}${detail} step:${step}`;
}

function kinds(row: Line): string {
  return Object.entries(row.error_kinds)
    .map(([kind, times]) => `${visible(kind)} ${times}`)
    .join(", ");
}
