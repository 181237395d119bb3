/** Where session time goes, by path of spans. */
import type { Hotspot, HotspotAnswer, Parameters } from "../../model/answers";
import { percent, sum, visible } from "../../model/format";
import { term } from "../../model/term";
import { useAnswer } from "../../state/answer";
import { link, param, setParams } from "../../state/route";
import { Text } from "../../views/bits";
import { Choice } from "../../views/choice";
import { cell, countCell, durationCell, numberCell, shareCell, textCell } from "../../views/cells";
import { Panel } from "../../views/panel";
import { type Column, Table } from "../../views/table";

type By = NonNullable<Parameters["hotspots"]["by"]>;
const GROUPINGS: readonly [By, string][] = [
  ["path", "path"],
  ["name", "name"],
  ["host", "host"],
  ["tool", "tool"],
  ["family", "family"],
];

export function HotspotsPanel({ scope, follow }: { scope: string; follow: boolean }) {
  const by = param("by", "path");
  const asked = useAnswer("hotspots", { scope, by }, { follow });
  return (
    <Panel
      title="Hotspots"
      hint="self time: without what runs inside"
      asked={asked}
      empty={({ hotspots }) => (hotspots.rows.length ? null : "No session of the step has spans.")}
      actions={
        <Choice
          label="Group hotspots by"
          options={GROUPINGS}
          chosen={by}
          onChoose={(next) => setParams({ by: next === "path" ? null : next }, { replace: true })}
        />
      }
    >
      {(data) => <HotspotTable answer={data} />}
    </Panel>
  );
}

function HotspotTable({ answer }: { answer: HotspotAnswer }) {
  const { rows, footer } = answer.hotspots;
  const columns: Column<Hotspot>[] = [
    textCell(
      "Path",
      (row) => row.path,
      (row) => (
        <a href={link("sessions", "", { f: filterOf(row, answer) })}>
          <Text text={row.path} max={60} />
        </a>
      ),
    ),
    ...(rows.some((row) => row.group !== null)
      ? [textCell(answer.grouped_by, (row: Hotspot) => row.group)]
      : []),
    countCell("n", (row) => row.count),
    durationCell("Total", (row) => row.total_ns),
    durationCell("Self", (row) => row.self_ns),
    shareCell("Share", (row) => row.share, "Of all session time, by self time"),
    durationCell("p50", (row) => row.p50_ns),
    durationCell("p95", (row) => row.p95_ns, "Needs 20"),
    durationCell("p99", (row) => row.p99_ns, "Needs 100"),
    durationCell("Max", (row) => row.max_ns),
    cell(
      "Errors",
      (row) => row.errors,
      (row) => (row.errors ? `${row.errors} (${percent(row.error_share)})` : "0"),
    ),
    numberCell("Open", (row) => row.open_now),
  ];
  const { session_ns, children_ns, other_ns, overlap_ns } = footer;
  const said = sum(session_ns, [children_ns, other_ns, -overlap_ns]);
  return (
    <>
      <Table
        label={`Hotspots by ${answer.grouped_by}`}
        columns={columns}
        rows={rows}
        rowKey={(row) => `${row.path}|${visible(row.group ?? "")}`}
        limit={15}
      />
      <p class="dim">
        Sessions took {said.whole} in all: {said.parts[0]} in the rows below sessions,{" "}
        {said.parts[1]} outside of any of them
        {overlap_ns > 0 &&
          `; ${said.parts[2]?.slice(1)} count more than once, for spans that overlap`}
        .
      </p>
    </>
  );
}

/** Fields of the filter language that rows can be grouped by. */
const FIELDS: Readonly<Record<string, string>> = { host: "host", tool: "detail", family: "family" };

/** The sessions that a row is made of. */
function filterOf(row: Hotspot, answer: HotspotAnswer): string {
  const names = row.path.split(" / ");
  const terms = [`step:${answer.scope}`];
  if (names.length > 1 || names[0] !== "session") terms.unshift(term("name", names.at(-1)!));
  const field = FIELDS[answer.grouped_by];
  if (field && row.group !== null) terms.unshift(term(field, row.group));
  return terms.join(" ");
}
