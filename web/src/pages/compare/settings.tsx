/** Settings, versions and machines that differ between two runs. */
import type { Overview } from "../../model/answers";
import { useAnswer } from "../../state/answer";
import { Text } from "../../views/bits";
import { Panel } from "../../views/panel";
import { type Column, Table } from "../../views/table";
import { textCell } from "../../views/cells";

function settingsOf(run: Overview): Record<string, string> {
  const { versions, pythons, hosts, families, roles, tags } = run;
  const lists = { versions, pythons, hosts, families, phases: Object.keys(roles).sort() };
  const listed = Object.entries(lists).map(([name, values]) => [name, values.join(", ")] as const);
  return { ...tags, processes: String(run.processes.length), ...Object.fromEntries(listed) };
}

type Setting = readonly [name: string, a: string | undefined, b: string | undefined];

export function SettingsPanel({ overview, other }: { overview: Overview; other: string }) {
  const asked = useAnswer("overview", {}, { run: other, follow: false });
  const ours = settingsOf(overview);
  const theirs = asked.data ? settingsOf(asked.data) : {};
  const rows = Object.keys({ ...ours, ...theirs })
    .map((name): Setting => [name, ours[name], theirs[name]])
    .filter(([, a, b]) => a !== b);
  return (
    <Panel
      title="Settings that differ"
      asked={asked}
      empty={() => (rows.length ? null : "None that is recorded.")}
    >
      {() => <Table label="Settings" columns={COLUMNS} rows={rows} rowKey={([name]) => name} />}
    </Panel>
  );
}

const COLUMNS: readonly Column<Setting>[] = ["Setting", "A", "B"].map((title, i) =>
  textCell(
    title,
    (row) => row[i],
    (row) => <Text text={row[i]} max={120} />,
  ),
);
