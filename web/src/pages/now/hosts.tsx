/** How each host or replica is doing: what runs there, how its loops and engines are. */
import { useMemo, useState } from "preact/hooks";
import type { HostLine, Hosts as HostsAnswer, Overview } from "../../model/answers";
import { duration, grouped, number, visible } from "../../model/format";
import { isImported } from "../../model/origin";
import { term } from "../../model/term";
import { useAnswer } from "../../state/answer";
import { link } from "../../state/route";
import { Age, type AsOf } from "../../views/age";
import { Badge, StackBar, Text } from "../../views/bits";
import { cell, countCell, numberCell, shareCell, textCell } from "../../views/cells";
import { Choice } from "../../views/choice";
import { Panel } from "../../views/panel";
import { Table, type Column } from "../../views/table";

type Grouping = "host" | "replica";
type Roles = Readonly<Record<string, string>>;

const LATE_NS = 100e6;
const GROUPINGS = [
  ["host", "By host"],
  ["replica", "By replica"],
] as const;

export function HostsPanel({ isAlive, overview }: { isAlive: boolean; overview: Overview }) {
  const [by, setBy] = useState<Grouping>("host");
  const asked = useAnswer("hosts", { by });
  return (
    <Panel
      title="Hosts"
      asked={asked}
      empty={(hosts) =>
        hosts.lines.length === 0
          ? by === "host"
            ? "No process has been heard of yet."
            : "No session names a replica."
          : null
      }
      actions={<Choice label="A line is" options={GROUPINGS} chosen={by} onChoose={setBy} />}
    >
      {(hosts) => <HostTable hosts={hosts} isAlive={isAlive} overview={overview} by={by} />}
    </Panel>
  );
}

function HostTable(props: {
  hosts: HostsAnswer;
  isAlive: boolean;
  overview: Overview;
  by: Grouping;
}) {
  const { hosts, isAlive, overview, by } = props;
  const { roles } = overview;
  const columns = useMemo(() => {
    const at: AsOf = { now_ns: hosts.now_ns, is_alive: isAlive };
    const most = Math.max(...hosts.lines.map((one) => one.in_flight), 1);
    const hasEngine = hosts.lines.some(
      (one) => (one.kv_use ?? one.engine_running ?? one.engine_waiting) !== null,
    );
    return [
      ...runningColumns(by, roles, most),
      ...(hasEngine ? ENGINE_COLUMNS : []),
      ...(isImported(overview) ? [] : healthColumns(at)),
    ];
  }, [hosts, isAlive, roles, by]);
  return (
    <Table
      label={by === "host" ? "Hosts" : "Replicas"}
      columns={columns}
      rows={hosts.lines}
      rowKey={(one) => one.name}
      limit={20}
    />
  );
}

function runningColumns(by: Grouping, roles: Roles, most: number): Column<HostLine>[] {
  return [
    textCell(
      by === "host" ? "Host" : "Replica",
      (one) => one.name,
      (one) => (
        <>
          <a href={link("sessions", "", { f: term(by, one.name) })}>
            <Text text={one.name} max={32} />
          </a>{" "}
          {one.engines_down > 0 && <Badge tone="bad">engine down</Badge>}
        </>
      ),
    ),
    cell(
      "In flight",
      (one) => one.in_flight,
      (one) => (
        <span class="nowrap">
          {grouped(one.in_flight)}
          {one.capacity !== null && <span class="dim"> / {grouped(one.capacity)}</span>}
        </span>
      ),
    ),
    textCell(
      "By phase",
      (one) =>
        Object.entries(one.phases)
          .map(([name, count]) => `${name} ${count}`)
          .join(", "),
      (one) => (
        <StackBar
          label={`${visible(one.name)} by phase`}
          total={Math.max(one.capacity ?? 0, most)}
          format={grouped}
          parts={Object.entries(one.phases).map(([label, value]) => ({
            label,
            value,
            role: roles[label] ?? null,
          }))}
        />
      ),
    ),
  ];
}

const ENGINE_COLUMNS: Column<HostLine>[] = [
  shareCell("KV in use", (one) => one.kv_use, "Share of the key-value cache in use"),
  cell(
    "Engine runs, queues",
    (one) => one.engine_running,
    (one) =>
      one.engine_running === null
        ? "–"
        : `${number(one.engine_running)}, ${number(one.engine_waiting)}`,
  ),
  numberCell("Preempted", (one) => one.preempted, "In the last half minute"),
  shareCell("Prefix hits", (one) => one.prefix_hits, "Of the prompt tokens of that time"),
  countCell(
    "Tokens/s",
    (one) => one.tokens_per_s && Math.round(one.tokens_per_s),
    "Generated, over that time",
  ),
];

function healthColumns(at: AsOf): Column<HostLine>[] {
  return [
    cell(
      "Loop lag p99",
      (one) => one.loop_lag_p99_ns,
      (one) => <Lag ns={one.loop_lag_p99_ns} />,
      "How late event loops ran what was due, over the last minute",
    ),
    cell(
      "Heart-beat",
      (one) => one.heartbeat_age_ns,
      (one) =>
        one.alive > 0 ? (
          <span class="nowrap">
            <Age ns={one.heartbeat_age_ns} at={at} /> ago
          </span>
        ) : (
          <span class="dim">{one.processes > 0 ? "over" : "–"}</span>
        ),
    ),
    cell(
      "Alive",
      (one) => one.alive,
      (one) => `${one.alive} of ${one.processes}`,
      "Processes that live, of all that recorded",
    ),
  ];
}

function Lag({ ns }: { ns: number | null }) {
  if (ns !== null && ns >= LATE_NS) return <Badge tone="warn">{duration(ns)}</Badge>;
  return <span class={ns === null ? "dim" : ""}>{duration(ns)}</span>;
}
