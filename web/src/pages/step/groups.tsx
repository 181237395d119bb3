/** Groups of samples: which teach nothing, which are incomplete, which wait for one member. */
import type { Groups } from "../../model/answers";
import { grouped, percent, plural } from "../../model/format";
import { term } from "../../model/term";
import { useAnswer } from "../../state/answer";
import { link } from "../../state/route";
import { Badge, Text } from "../../views/bits";
import { cell, durationCell, numberCell, rewardCell, textCell } from "../../views/cells";
import { Panel } from "../../views/panel";
import { type Column, Table } from "../../views/table";

type Line = Groups["groups"][number];

export function GroupsPanel({ scope, follow }: { scope: string; follow: boolean }) {
  const asked = useAnswer("groups", { scope, limit: 20 }, { follow });
  return (
    <Panel
      title="Groups"
      asked={asked}
      empty={(data) => (data.of ? null : "No two sessions of the step belong to one group.")}
    >
      {(data) => (
        <>
          <p>
            {plural(data.of, "group")} of mostly {data.usual_members}: {grouped(data.equal)} with
            equal rewards ({percent(data.equal_share)} of the complete ones),{" "}
            {grouped(data.incomplete)} incomplete.
            {data.ratio_p50 !== null &&
              ` In the median group the slowest member takes ${data.ratio_p50.toFixed(1)} times as long as the median one.`}
          </p>
          <Table
            label="Groups"
            columns={COLUMNS}
            rows={data.groups}
            rowKey={(row) => `${row.group} ${row.step}`}
            limit={8}
          />
        </>
      )}
    </Panel>
  );
}

const COLUMNS: readonly Column<Line>[] = [
  textCell(
    "Group",
    (row) => row.group,
    (row) => (
      <a href={link("sessions", "", { f: filterOf(row) })}>
        <Text text={row.group} max={40} />
      </a>
    ),
  ),
  numberCell("Members", (row) => row.members),
  cell(
    "Slowest / median",
    (row) => row.ratio,
    (row) => (
      <a href={link("session", row.session_id)} title="Open the slowest member">
        {row.ratio === null ? "–" : `${row.ratio.toFixed(1)} ×`}
      </a>
    ),
  ),
  durationCell("Slowest", (row) => row.slowest_ns),
  rewardCell("Reward", (row) => row.mean_reward),
  rewardCell("Spread", (row) => row.spread),
  textCell(
    "State",
    (row) => (row.is_equal ? "equal" : row.is_incomplete ? "incomplete" : ""),
    (row) =>
      (row.is_equal || row.is_incomplete) && (
        <span>
          {row.is_equal && <Badge tone="warn">equal rewards</Badge>}{" "}
          {row.is_incomplete && <Badge>incomplete</Badge>}
        </span>
      ),
  ),
];

function filterOf(row: Line): string {
  const own = row.group === row.task_key ? term("task", row.group) : term("group", row.group);
  return row.step === null ? own : `${own} step:${row.step}`;
}
