/** How each host or replica is doing: what runs there, how its loops and engines are. */
import { useMemo, useState } from "preact/hooks";
import type { HostLine, Hosts as HostsAnswer } from "../../model/answers";
import { duration, grouped, number, visible } from "../../model/format";
import { term } from "../../model/term";
import { useAnswer } from "../../state/answer";
import { link } from "../../state/route";
import { Age, type AsOf } from "../../views/age";
import { Badge, StackBar, Text } from "../../views/bits";
import { shareCell } from "../../views/cells";
import { Panel } from "../../views/panel";
import { Table, type Column } from "../../views/table";

type Grouping = "host" | "replica";
type Roles = Readonly<Record<string, string>>;

const LATE_NS = 100e6;

export function HostsPanel({ isAlive, roles }: { isAlive: boolean; roles: Roles }) {
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
      actions={<Switch by={by} onChange={setBy} />}
    >
      {(hosts) => <HostTable hosts={hosts} isAlive={isAlive} roles={roles} by={by} />}
    </Panel>
  );
}

function Switch({ by, onChange }: { by: Grouping; onChange: (by: Grouping) => void }) {
  return (
    <span class="row" role="group" aria-label="A line is">
      {(["host", "replica"] as const).map((one) => (
        <button key={one} aria-pressed={by === one} onClick={() => onChange(one)}>
          By {one}
        </button>
      ))}
    </span>
  );
}

function HostTable(props: { hosts: HostsAnswer; isAlive: boolean; roles: Roles; by: Grouping }) {
  const { hosts, isAlive, roles, by } = props;
  const columns = useMemo(() => {
    const at: AsOf = { now_ns: hosts.now_ns, is_alive: isAlive };
    const most = Math.max(...hosts.lines.map((one) => one.in_flight), 1);
    const hasEngine = hosts.lines.some(
      (one) => one.kv_use !== null || one.engine_running !== null || one.engine_waiting !== null,
    );
    return [
      ...runningColumns(by, roles, most),
      ...(hasEngine ? ENGINE_COLUMNS : []),
      ...healthColumns(at),
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
    {
      id: "name",
      title: by === "host" ? "Host" : "Replica",
      value: (one) => one.name,
      render: (one) => (
        <a href={link("sessions", "", { f: term(by, one.name) })}>
          <Text text={one.name} max={32} />
        </a>
      ),
    },
    {
      id: "in_flight",
      title: "In flight",
      align: "right",
      value: (one) => one.in_flight,
      render: (one) => (
        <span class="nowrap">
          {grouped(one.in_flight)}
          {one.capacity !== null && <span class="dim"> / {grouped(one.capacity)}</span>}
        </span>
      ),
    },
    {
      id: "phases",
      title: "By phase",
      value: (one) =>
        Object.entries(one.phases)
          .map(([name, count]) => `${name} ${count}`)
          .join(", "),
      render: (one) => (
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
    },
  ];
}

const ENGINE_COLUMNS: Column<HostLine>[] = [
  shareCell("KV in use", (one) => one.kv_use, "Share of the key-value cache in use"),
  {
    id: "engine",
    title: "Engine runs, queues",
    align: "right",
    value: (one) => one.engine_running,
    render: (one) => `${number(one.engine_running)}, ${number(one.engine_waiting)}`,
  },
];

function healthColumns(at: AsOf): Column<HostLine>[] {
  return [
    {
      id: "lag",
      title: "Loop lag p99",
      align: "right",
      hint: "How late event loops ran what was due, over the last minute",
      value: (one) => one.loop_lag_p99_ns,
      render: (one) => <Lag ns={one.loop_lag_p99_ns} />,
    },
    {
      id: "beat",
      title: "Heart-beat",
      align: "right",
      value: (one) => one.heartbeat_age_ns,
      render: (one) =>
        one.alive > 0 ? (
          <span class="nowrap">
            <Age ns={one.heartbeat_age_ns} at={at} /> ago
          </span>
        ) : (
          <span class="dim">over</span>
        ),
    },
    {
      id: "alive",
      title: "Alive",
      align: "right",
      hint: "Processes that live, of all that recorded",
      value: (one) => one.alive,
      render: (one) => `${one.alive} of ${one.processes}`,
    },
  ];
}

function Lag({ ns }: { ns: number | null }) {
  if (ns !== null && ns >= LATE_NS) return <Badge tone="warn">{duration(ns)}</Badge>;
  return <span class={ns === null ? "dim" : ""}>{duration(ns)}</span>;
}
