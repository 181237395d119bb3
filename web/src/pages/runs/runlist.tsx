/** The list of runs of a directory, and what to do when there is none yet. */
import { useEffect, useState } from "preact/hooks";
import { ago, bytes, moment } from "../../model/format";
import { formatRoute } from "../../model/route";
import { type RunEntry, type RunList as Runs, SourceError } from "../../model/source";
import { second } from "../../state/live";
import { navigate, route } from "../../state/route";
import { source } from "../../state/source";
import { Badge, Text } from "../../views/bits";
import { Failure, Skeleton } from "../../views/panel";
import { type Column, Table } from "../../views/table";
import { cell, countCell, textCell } from "../../views/cells";

const EVERY_S = 5;

const FIRST_LINES = `import rollscope as rs

rs.init(run="my-run", dir="runs")
with rs.session(sample=0), rs.phase("generate"):
    ...`;

export function RunList() {
  const [runs, setRuns] = useState<Runs | null>(null);
  const [error, setError] = useState<SourceError | null>(null);
  const beat = Math.floor(second.value / EVERY_S);
  useEffect(() => {
    document.title = "Runs · Rollscope";
    source()
      .runs()
      .then(
        (found) => {
          setError(null);
          setRuns(found);
          const [only] = found.runs;
          // Whoever has followed a link meanwhile stays there.
          if (only && found.runs.length === 1 && beat === 0 && !route.peek().run) {
            location.replace(formatRoute({ run: only.name }));
          }
        },
        (problem: unknown) => {
          setError(
            problem instanceof SourceError ? problem : new SourceError(String(problem), "", 0),
          );
        },
      );
  }, [beat]);
  return (
    <main id="main" tabIndex={-1} class="page">
      <h1>Runs</h1>
      {error && <Failure title="runs" error={error} />}
      {!runs && !error && <Skeleton />}
      {runs && (runs.runs.length ? <RunTable runs={runs} /> : <NothingYet dir={runs.dir} />)}
    </main>
  );
}

function RunTable({ runs }: { runs: Runs }) {
  const columns: Column<RunEntry>[] = [
    textCell(
      "Run",
      (run) => run.name,
      (run) => (
        <a href={formatRoute({ run: run.name })}>
          <Text text={run.name} />
        </a>
      ),
    ),
    textCell(
      "State",
      (run) => (run.is_alive ? 1 : 0),
      (run) =>
        run.problem ? (
          <Badge tone="bad" title={run.problem}>
            {run.problem}
          </Badge>
        ) : run.is_alive ? (
          <Badge tone="good">running</Badge>
        ) : run.is_crashed ? (
          <Badge tone="bad">crashed</Badge>
        ) : (
          <Badge>{run.is_imported ? "imported" : "ended"}</Badge>
        ),
    ),
    textCell(
      "Started",
      (run) => run.created_ns,
      (run) => <time title={moment(run.created_ns)}>{moment(run.created_ns).slice(0, 16)}</time>,
    ),
    textCell(
      "Last record",
      (run) => run.last_ns,
      (run) => ago(run.last_ns, runs.now_ns),
    ),
    cell("Steps", (run) => run.steps),
    cell("In flight", (run) => run.open_sessions),
    countCell("Spans", (run) => run.spans),
    cell(
      "Size",
      (run) => run.size_bytes,
      (run) => bytes(run.size_bytes),
    ),
  ];
  return (
    <Table
      label="Runs"
      columns={columns}
      rows={runs.runs}
      rowKey={(run) => run.name}
      sort="-last record"
      onOpen={(run) => navigate(formatRoute({ run: run.name }))}
    />
  );
}

function NothingYet({ dir }: { dir: string }) {
  return (
    <section class="panel nothing">
      <h2>No run yet</h2>
      <p>
        Looking in <code>{dir}</code> every {EVERY_S} seconds. Record one with three lines:
      </p>
      <pre>{FIRST_LINES}</pre>
      <p>
        Or see a small run made for looking at: <code>rollscope demo</code>
      </p>
    </section>
  );
}
