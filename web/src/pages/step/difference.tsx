/** What is different about some sessions of the step, against all the others. */
import type { CompareSelection, PhaseDifference } from "../../model/answers";
import { grouped, number, plural, visible } from "../../model/format";
import { lengthTerm } from "../../model/term";
import { useAnswer } from "../../state/answer";
import { link, param, setParams } from "../../state/route";
import { Badge } from "../../views/bits";
import { durationCell, numberCell, textCell } from "../../views/cells";
import { Panel } from "../../views/panel";
import type { Region } from "../../views/plane";
import { type Column, Table } from "../../views/table";

/** Key in the address, what it is called, and the filter that chooses the sessions. */
export type Preset = readonly [string, string, string];

export function DifferencePanel(props: {
  scope: string;
  region: Region | null;
  presets: readonly Preset[];
}) {
  const { region, presets } = props;
  const which = param("which");
  const preset = presets.find(([key]) => key === which);
  const filter = region ? regionFilter(region) : preset?.[2];
  return (
    <section class="ask">
      <div class="row">
        <b>What is different?</b>
        {presets.map(([key, title]) => (
          <button
            key={key}
            aria-pressed={which === key}
            onClick={() =>
              setParams({ which: which === key ? null : key, box: null }, { replace: true })
            }
          >
            {title}
          </button>
        ))}
        {filter && (
          <button
            class="link"
            onClick={() => setParams({ which: null, box: null }, { replace: true })}
          >
            Clear
          </button>
        )}
      </div>
      {filter && <Differences scope={props.scope} filter={filter} region={region} />}
    </section>
  );
}

function regionFilter(region: Region): string {
  return `${lengthTerm("ran", ">=", region.low)} ${lengthTerm("ran", "<", region.high)}`;
}

/** Sessions that a filter chooses, against another selection or all others of the scope. */
export function Differences(props: {
  scope: string;
  filter: string;
  against?: string;
  region?: Region | null;
}) {
  const { scope, filter, region, against } = props;
  const times = region ? { from_ns: String(region.from), to_ns: String(region.to) } : {};
  const asked = useAnswer("select", { scope, filter, against, ...times }, { follow: false });
  const own = scope === "all" ? filter : `${filter} step:${scope}`;
  return (
    <Panel
      title="What is different about these"
      hint={
        asked.data && `${plural(asked.data.chosen, "session")} against ${grouped(asked.data.rest)}`
      }
      asked={asked}
      actions={<a href={link("sessions", "", { f: own })}>Open them</a>}
    >
      {(data) => <DifferenceAnswer data={data} />}
    </Panel>
  );
}

function DifferenceAnswer({ data: { differences } }: { data: CompareSelection }) {
  return (
    <>
      <p>
        {differences.rows.length === 0 && `${visible(differences.text)} `}
        <span class="dim">{plural(differences.columns, "attribute")} tested.</span>
      </p>
      {differences.is_enough && differences.is_few_tasks && (
        <Badge tone="warn" title="Samples of one task are not independent of each other">
          few tasks
        </Badge>
      )}
      <ol class="differences">
        {differences.rows.map((row) => (
          <li key={`${row.column} ${row.value ?? ""}`}>
            {visible(row.text)} <span class="dim">effect {number(row.effect)}</span>
            {row.alike.length > 0 && (
              <span class="dim"> (alike: {visible(row.alike.join(", "))})</span>
            )}
          </li>
        ))}
      </ol>
      {differences.phases.length > 0 && (
        <>
          <h3>Where the time went</h3>
          <Table
            label="Where the time went"
            columns={PHASES}
            rows={differences.phases}
            rowKey={(row) => row.name}
            limit={6}
          />
        </>
      )}
    </>
  );
}

const PHASES: readonly Column<PhaseDifference>[] = [
  textCell("Phase", (row) => row.name),
  durationCell("p50 of these", (row) => row.chosen_p50_ns),
  durationCell("p50 of the rest", (row) => row.rest_p50_ns),
  numberCell("Effect", (row) => row.effect, "Cliff's delta, from −1 to 1"),
];
