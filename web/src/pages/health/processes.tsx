/** What each process recorded, whether all of it arrived, and how its event loop is. */
import { useMemo } from "preact/hooks";
import type { DropLine, Health, IngestLine, LoopLine } from "../../model/answers";
import { duration, grouped, percent } from "../../model/format";
import { Age } from "../../views/age";
import { Badge, Text, type Tone } from "../../views/bits";
import { countCell, durationCell } from "../../views/cells";
import { Table, type Column } from "../../views/table";

const STATUS_TONES: Record<string, Tone> = { alive: "good", dead: "bad" };

/** A column of a count that is to be zero. */
function lossColumn<T>(
  id: string,
  title: string,
  hint: string,
  value: (one: T) => number,
): Column<T> {
  return {
    id,
    title,
    hint,
    align: "right",
    value,
    render: (one) => (value(one) > 0 ? <Badge tone="bad">{grouped(value(one))}</Badge> : <>0</>),
  };
}

function titleColumn<T extends { title: string; process: string }>(): Column<T> {
  return {
    id: "title",
    title: "Process",
    value: (one) => one.title,
    render: (one) => (
      <span title={one.process}>
        <Text text={one.title} max={40} />
      </span>
    ),
  };
}

/** Of what a file tells of, nothing beats or falls silent. */
const LIVING = ["beat", "silent", "dropped", "missing"];

export function Processes({ health, isFile }: { health: Health; isFile: boolean }) {
  const columns = useMemo(
    () => processColumns(health).filter((one) => !isFile || !LIVING.includes(one.id)),
    [health, isFile],
  );
  return (
    <Table
      label="Processes"
      columns={columns}
      rows={health.processes}
      rowKey={(one) => one.process}
      limit={20}
    />
  );
}

function processColumns(health: Health): Column<IngestLine>[] {
  const hasFill = Object.keys(health.buffer_fill).length > 0;
  const fill: Column<IngestLine> = {
    id: "fill",
    title: "Buffer",
    hint: "How full its buffer was when it last said so",
    align: "right",
    value: (one) => health.buffer_fill[one.title],
    render: (one) => percent(health.buffer_fill[one.title]),
  };
  return [
    titleColumn<IngestLine>(),
    { id: "host", title: "Host", value: (one) => one.host },
    {
      id: "status",
      title: "Status",
      value: (one) => one.status,
      render: (one) => <Badge tone={STATUS_TONES[one.status] ?? "plain"}>{one.status}</Badge>,
    },
    {
      id: "beat",
      title: "Heart-beat",
      align: "right",
      hint: "How long ago it was last heard of, up to now or to the end of the run",
      value: (one) => one.heartbeat_age_ns,
      render: (one) => (
        <span title={`It beats every ${duration(one.heartbeat_ns)}`}>
          <Age
            ns={one.heartbeat_age_ns}
            at={{ now_ns: health.now_ns, is_alive: one.status === "alive" }}
          />
        </span>
      ),
    },
    countCell("Spans", (one) => one.spans),
    countCell("Open", (one) => one.open_spans),
    lossColumn(
      "unmatched",
      "No end",
      "Spans that began and never ended, though the process went on",
      (one) => one.unmatched_starts,
    ),
    lossColumn("dropped", "Dropped", "Records that it had to drop", (one) => one.dropped),
    lossColumn(
      "missing",
      "Missing frames",
      "Frames that it wrote and that are not there",
      (one) => one.missing_frames,
    ),
    durationCell(
      "Silent",
      (one) => one.silent_ns,
      "How long it was silent in all, though it lived",
    ),
    ...(hasFill ? [fill] : []),
  ];
}

const DROP_COLUMNS: Column<DropLine>[] = [
  titleColumn<DropLine>(),
  { id: "kind", title: "Records", value: (one) => one.kind },
  { id: "reason", title: "Reason", value: (one) => one.reason },
  countCell("Count", (one) => one.count),
];

export function Drops({ drops }: { drops: readonly DropLine[] }) {
  return (
    <Table
      label="Drops"
      columns={DROP_COLUMNS}
      rows={drops}
      rowKey={(one) => `${one.process} ${one.kind} ${one.reason}`}
      limit={20}
    />
  );
}

const LOOP_COLUMNS: Column<LoopLine>[] = [
  titleColumn<LoopLine>(),
  { id: "pid", title: "Pid", align: "right", value: (one) => one.pid },
  durationCell(
    "Lag p99",
    (one) => one.lag_p99_ns,
    "How late it ran what was due, over the last minute; within 5 %",
  ),
  durationCell("Blocked", (one) => one.blocked_ns, "In all"),
  durationCell("Longest", (one) => one.longest_ns),
  {
    id: "line",
    title: "Blocked by",
    hint: "Where the loop was when a stack was last taken while it was late",
    value: (one) => one.line,
    render: (one) => (
      <span class="mono">
        <Text text={one.line} max={200} />
      </span>
    ),
  },
];

export function Loops({ loops }: { loops: readonly LoopLine[] }) {
  return (
    <Table
      label="Event loops"
      columns={LOOP_COLUMNS}
      rows={loops}
      rowKey={(one) => one.process}
      limit={20}
    />
  );
}
