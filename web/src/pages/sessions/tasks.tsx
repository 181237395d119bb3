/** Tasks over all steps: which are slow or fail again and again. */
import type { TaskLine } from "../../model/answers";
import { duration, percent, plural } from "../../model/format";
import { term } from "../../model/term";
import { useAnswer } from "../../state/answer";
import { link, param, setParams } from "../../state/route";
import { Text, Time } from "../../views/bits";
import { durationCell, numberCell, rewardCell, shareCell } from "../../views/cells";
import { Panel } from "../../views/panel";
import { type Column, Table } from "../../views/table";

const MOST = 200;

export function TasksPanel({ filter }: { filter: string }) {
  const sort = param("sort", "-total");
  const asked = useAnswer("tasks", { filter, sort, limit: MOST });
  return (
    <Panel
      title="Tasks"
      asked={asked}
      hint={
        asked.data &&
        (asked.data.matched > MOST
          ? `the first ${MOST} of ${plural(asked.data.matched, "task")}`
          : plural(asked.data.matched, "task"))
      }
      empty={(data) => (data.matched ? null : "No session names a task.")}
    >
      {(data) => (
        <Table
          label="Tasks"
          columns={COLUMNS}
          rows={data.tasks}
          rowKey={(row) => String(row.task_key)}
          sort={sort}
          onSort={(next) => setParams({ sort: next })}
        />
      )}
    </Panel>
  );
}

function sessionsOf(row: TaskLine, more = ""): string {
  const own = row.task_key === null ? "task:none" : term("task", row.task_key);
  return link("sessions", "", { f: `${own} ${more}`.trim() });
}

/** Their ids are what the question sorts by. */
const COLUMNS: readonly Column<TaskLine>[] = [
  {
    id: "task",
    title: "Task",
    value: (row) => row.task_key,
    render: (row) => (
      <a href={sessionsOf(row)}>
        <Text text={row.task_key ?? "none"} max={40} />
      </a>
    ),
  },
  numberCell("Tries", (row) => row.tries),
  durationCell("Total", (row) => row.total_ns),
  durationCell("p50", (row) => row.p50_ns),
  {
    ...durationCell<TaskLine>("Max", (row) => row.max_ns),
    render: (row) => <a href={link("session", row.session_id)}>{duration(row.max_ns)}</a>,
  },
  {
    ...shareCell<TaskLine>("Failed", (row) => row.failure_share),
    id: "failures",
    render: (row) => (
      <a href={sessionsOf(row, "outcome:failed,timeout")}>{percent(row.failure_share)}</a>
    ),
  },
  numberCell("Timeouts", (row) => row.timeouts),
  numberCell("Retries", (row) => row.retries),
  rewardCell("Reward", (row) => row.mean_reward),
  rewardCell("Spread", (row) => row.spread),
  {
    id: "seen",
    title: "Last seen",
    value: (row) => row.last_ns,
    render: (row) => <Time ns={row.last_ns} />,
  },
];
