/** Clocks, disk, damaged files and versions: what the run's data stands on. */
import type { ComponentChildren } from "preact";
import type { ClockLine, Health } from "../../model/answers";
import { bytes, duration, grouped, moment } from "../../model/format";
import { Badge, Text } from "../../views/bits";
import { durationCell } from "../../views/cells";
import { SplitBar } from "../../views/splitbar";
import { Table, type Column } from "../../views/table";

const UNCERTAIN_NS = 5e6;

const CLOCK_COLUMNS: Column<ClockLine>[] = [
  { id: "host", title: "Host", value: (one) => one.host },
  durationCell("Times moved by", (one) => one.offset_ns),
  {
    id: "error",
    title: "Uncertain by",
    align: "right",
    hint: "Half the width of the range that the correction may lie in",
    value: (one) => one.error_ns,
    render: (one) =>
      one.error_ns === null ? (
        <span class="dim">only one end known</span>
      ) : one.error_ns > UNCERTAIN_NS ? (
        <Badge tone="warn">± {duration(one.error_ns)}</Badge>
      ) : (
        `± ${duration(one.error_ns)}`
      ),
  },
  {
    id: "drift",
    title: "Drifts by",
    align: "right",
    hint: "How fast it falls behind, in millionths",
    value: (one) => one.drift_ppm,
    render: (one) => `${one.drift_ppm.toFixed(1)} ppm`,
  },
  {
    id: "source",
    title: "Known by",
    hint: "Round trips of requests, or the order of records",
    value: (one) => one.source,
    render: (one) => (one.readings ? `${grouped(one.readings)} ${one.source}` : one.source),
  },
];

export function Clocks({ clocks }: { clocks: readonly ClockLine[] }) {
  return (
    <Table
      label="Clocks"
      columns={CLOCK_COLUMNS}
      rows={clocks}
      rowKey={(one) => one.host}
      limit={20}
    />
  );
}

export function Disk({ disk }: { disk: Health["disk"] }) {
  const other = disk.run_bytes - disk.segment_bytes - disk.log_bytes - disk.payload_bytes;
  return (
    <>
      <SplitBar
        label="What the run takes"
        total={disk.run_bytes}
        format={bytes}
        shares={[
          { label: "segments", value: disk.segment_bytes, colour: "--accent" },
          { label: "logs", value: disk.log_bytes, colour: "--role-env" },
          { label: "payloads", value: disk.payload_bytes, colour: "--role-reward" },
          { label: "other", value: Math.max(0, other), colour: "--role-other" },
        ]}
      />
      <dl class="facts">
        <Fact title="Takes">{bytes(disk.run_bytes)}</Fact>
        <Fact title="Free">{bytes(disk.free_bytes)}</Fact>
        <Fact title="Segments">{grouped(disk.segments)}</Fact>
        <Fact title="Kept since">{disk.oldest_ns === null ? "–" : moment(disk.oldest_ns)}</Fact>
      </dl>
    </>
  );
}

function Fact(props: { title: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{props.title}</dt>
      <dd>{props.children}</dd>
    </div>
  );
}

interface LogLine {
  log: string;
  what: string;
  bytes: number;
}

const LOG_COLUMNS: Column<LogLine>[] = [
  {
    id: "log",
    title: "Log",
    value: (one) => one.log,
    render: (one) => <Text text={one.log} max={60} />,
  },
  { id: "what", title: "Problem", value: (one) => one.what },
  {
    id: "bytes",
    title: "Bytes",
    align: "right",
    value: (one) => one.bytes,
    render: (one) => bytes(one.bytes),
  },
];

/** Logs that cannot be read to their end. */
export function badLogs(health: Health): LogLine[] {
  const lines = (given: Readonly<Record<string, number>>, what: string): LogLine[] =>
    Object.entries(given).map(([log, size]) => ({ log, what, bytes: size }));
  return [
    ...lines(health.damaged_logs, "cannot be read"),
    ...lines(health.torn_logs, "ends within a frame"),
  ];
}

export function Logs({ health }: { health: Health }) {
  return (
    <Table
      label="Torn and damaged logs"
      columns={LOG_COLUMNS}
      rows={badLogs(health)}
      rowKey={(one) => `${one.log} ${one.what}`}
      limit={20}
    />
  );
}

export function Versions({ health, isFile }: { health: Health; isFile: boolean }) {
  return (
    <dl class="facts">
      <Fact title={isFile ? "Imported with Rollscope" : "Recorded with Rollscope"}>
        <Text text={health.recorded_with.join(", ")} />
      </Fact>
      <Fact title="Read with">{health.version}</Fact>
      {!isFile && (
        <Fact title="Python">
          <Text text={health.pythons.join(", ")} />
        </Fact>
      )}
      <Fact title="Schema of segments">{health.schema}</Fact>
    </dl>
  );
}
