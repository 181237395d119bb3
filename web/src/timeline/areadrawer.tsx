/** The sums of a drawn area: by name, host and outcome from the source, else from the columns. */
import { useEffect, useState } from "preact/hooks";
import { sumArea } from "../model/area";
import { duration, plural } from "../model/format";
import { formatRange } from "../model/route";
import { SourceError } from "../model/source";
import { link, runName } from "../state/route";
import { source } from "../state/source";
import { Text } from "../views/bits";
import { Drawer } from "../views/drawer";
import { type Column, Table } from "../views/table";
import type { Area, Scene } from "./scene";
import { countCell, durationCell, textCell } from "../views/cells";

interface AreaRow {
  key: string;
  count: number;
  total_ns: number;
  self_ns: number;
  p50_ns: number | null;
  p95_ns: number | null;
  max_ns: number | null;
  open: number;
}

interface AreaSums {
  count: number;
  sessions: number | null;
  by_name: AreaRow[];
  by_host: AreaRow[];
  by_outcome: AreaRow[];
}

export function AreaDrawer({ scene, by, area }: { scene: Scene; by: string; area: Area }) {
  const [sums, error] = useSums(scene, by, area);
  return (
    <Drawer
      title={`${duration(area.t1 - area.t0)} on ${plural(area.lanes.length, "lane")}`}
      label="Area"
      onClose={() => {
        scene.area.value = null;
      }}
    >
      <div class="row">
        <button onClick={() => scene.fit()}>Fit</button>
        <a href={link("sessions", "", { t: formatRange(secondsOf(area)) })}>
          Sessions of this time
        </a>
      </div>
      {error && <p role="alert">{error}</p>}
      {sums === null && !error && <p class="dim">Adding up</p>}
      {sums !== null && (
        <>
          <p>
            {plural(sums.count, "span")}
            {sums.sessions !== null && ` of ${plural(sums.sessions, "session")}`}
          </p>
          <Sums title="name" rows={sums.by_name} />
          <Sums title="host" rows={sums.by_host} />
          <Sums title="outcome" rows={sums.by_outcome} />
        </>
      )}
    </Drawer>
  );
}

function secondsOf({ t0, t1 }: Area): { from: number; to: number } {
  return { from: Math.max(t0, 0) / 1e9, to: t1 / 1e9 };
}

function Sums({ title, rows }: { title: string; rows: readonly AreaRow[] }) {
  if (rows.length === 0) return null;
  const columns: Column<AreaRow>[] = [
    textCell(
      title,
      (row) => row.key,
      (row) => <Text text={row.key} max={40} />,
    ),
    countCell("n", (row) => row.count),
    durationCell("total", (row) => row.total_ns),
    durationCell("self", (row) => row.self_ns),
    durationCell("p50", (row) => row.p50_ns),
    durationCell("p95", (row) => row.p95_ns),
    durationCell("max", (row) => row.max_ns),
  ];
  return (
    <Table
      label={`area by ${title}`}
      columns={columns}
      rows={rows}
      rowKey={(row) => row.key}
      limit={12}
    />
  );
}

function useSums(scene: Scene, by: string, area: Area): [AreaSums | null, string] {
  const [got, setGot] = useState<{ of: Area; sums: AreaSums | null; error: string } | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    if (!source().isLive) {
      setGot({ of: area, sums: fromColumns(scene, area), error: "" });
      return;
    }
    source()
      .ask<AreaSums>(runName.peek(), "area", paramsOf(scene, by, area), abort.signal)
      .then((sums) => setGot({ of: area, sums, error: "" }))
      .catch((error: unknown) => {
        if (abort.signal.aborted) return;
        const told = error instanceof SourceError ? error.message : "The sums failed.";
        setGot({ of: area, sums: null, error: told });
      });
    return () => {
      abort.abort();
    };
  }, [area]);
  return got?.of === area ? [got.sums, got.error] : [null, ""];
}

/** The source counts lanes by their position from the top, in its own order. */
function paramsOf(scene: Scene, by: string, area: Area): Record<string, string | number> {
  const header = scene.data.peek()?.header;
  const positions = area.lanes.map((lane) => {
    const at = header?.order?.indexOf(lane) ?? lane;
    return at + (header?.first_lane ?? 0);
  });
  const first = Math.min(...positions);
  return {
    by,
    t0: String(scene.baseNs + BigInt(Math.round(area.t0))),
    t1: String(scene.baseNs + BigInt(Math.round(area.t1))),
    first,
    lanes: Math.max(...positions) - first + 1,
  };
}

function fromColumns(scene: Scene, area: Area): AreaSums | null {
  const data = scene.data.peek();
  if (data === null) return null;
  const rows = sumArea(data.tables, data.header.names, area, scene.now());
  const by_name = rows.map(({ label, ...row }) => ({ key: label, ...row }));
  const all = rows.reduce((sum, row) => sum + row.count, 0);
  return { count: all, sessions: null, by_name, by_host: [], by_outcome: [] };
}
