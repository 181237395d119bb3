/** What was thrown away, and whether what was kept is a fair sample of the rest. */
import type { Decile, StepAnswer, WasteRow, WasteSelection } from "../../model/answers";
import { count, duration, grouped, number, percent, plural } from "../../model/format";
import { term } from "../../model/term";
import type { Asked } from "../../state/answer";
import { link } from "../../state/route";
import { Badge, Outcome, Text } from "../../views/bits";
import { countCell, durationCell, numberCell, shareCell, textCell } from "../../views/cells";
import { Panel } from "../../views/panel";
import { type Column, Table } from "../../views/table";

export function WastePanel({ asked, step }: { asked: Asked<StepAnswer>; step: number }) {
  return (
    <Panel
      title="Waste"
      asked={asked}
      hint="sessions that were never consumed"
      empty={({ parts: { waste } }) =>
        waste.rows.length
          ? null
          : waste.is_consumption_recorded
            ? "Nothing was thrown away."
            : "Nothing failed or was rejected; which sessions were consumed is not recorded."
      }
    >
      {({ parts: { waste } }) => (
        <>
          <p>
            {plural(waste.count, "session")} of {grouped(waste.all_count)}, {count(waste.tokens)}{" "}
            tokens, {duration(waste.slot_ns)} of slot time ({percent(waste.share)})
            {waste.pending > 0 && `; ${waste.pending} more may still be consumed`}.
          </p>
          <Table
            label="Waste"
            columns={wasteColumns(step)}
            rows={waste.rows}
            rowKey={(row) => `${row.outcome} ${row.reason ?? ""} ${row.is_earlier_attempt}`}
            limit={8}
          />
        </>
      )}
    </Panel>
  );
}

function wasteColumns(step: number): Column<WasteRow>[] {
  return [
    textCell(
      "Outcome",
      (row) => row.outcome,
      (row) => (
        <a href={link("sessions", "", { f: filterOf(row, step) })}>
          <Outcome outcome={row.outcome} />
        </a>
      ),
    ),
    textCell(
      "Reason",
      (row) => row.reason,
      (row) => (
        <span>
          <Text text={row.reason} max={36} />{" "}
          {row.is_earlier_attempt && <Badge title="Tried again">earlier try</Badge>}
        </span>
      ),
    ),
    numberCell("n", (row) => row.count),
    countCell("Tokens", (row) => row.tokens),
    durationCell("Slot time", (row) => row.slot_ns),
    shareCell("Share", (row) => row.share),
  ];
}

function filterOf(row: WasteRow, step: number): string {
  const outcome = row.outcome === "lost" ? "status:lost" : `outcome:${row.outcome}`;
  const reason =
    row.reason === null || row.outcome === "lost" ? "" : ` ${term("reason", row.reason)}`;
  return `${outcome}${reason} step:${step}`;
}

export function SelectionPanel({ asked }: { asked: Asked<StepAnswer> }) {
  return (
    <Panel
      title="Selection"
      asked={asked}
      hint="share consumed, from the shortest tenth of the sessions to the longest"
      empty={({ parts: { waste } }) =>
        waste.selection.some((one) => one.distance !== null)
          ? null
          : "There is nothing to compare: it needs both consumed and discarded sessions."
      }
    >
      {({ parts: { waste } }) => (
        <>
          {waste.selection
            .filter((one) => one.distance !== null)
            .map((one) => (
              <Deciles key={one.measure} selection={one} />
            ))}
        </>
      )}
    </Panel>
  );
}

function Deciles({ selection }: { selection: WasteSelection }) {
  const write = selection.measure === "duration" ? duration : grouped;
  const say = (one: Decile): string =>
    `up to ${write(one.upto)}: ${one.consumed} consumed, ${one.discarded} discarded`;
  return (
    <div class="deciles">
      <h3>
        By {selection.measure === "duration" ? "duration" : "length in tokens"}{" "}
        <span class="dim">
          n {grouped(selection.consumed)} / {grouped(selection.discarded)}
        </span>{" "}
        {selection.is_flagged && (
          <Badge tone="warn" title="The two differ by more than chance explains">
            biased
          </Badge>
        )}
      </h3>
      <ol>
        {selection.deciles.map((one, i) => (
          <li key={i} title={say(one)}>
            <i style={{ height: `${(one.share ?? 0) * 100}%` }} />
            <span class="visually-hidden">{say(one)}</span>
          </li>
        ))}
      </ol>
      <p class="dim">
        Distance {number(selection.distance)}; chance alone stays below {number(selection.limit)}.
      </p>
    </div>
  );
}
