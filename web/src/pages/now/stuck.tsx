/** Open sessions, the most suspicious first: where each one is, since when, and at which line. */
import { useMemo, useRef, useState } from "preact/hooks";
import type { Now, StuckRow } from "../../model/answers";
import { grouped, plural, rate, visible } from "../../model/format";
import { link, navigate } from "../../state/route";
import { Age, Until } from "../../views/age";
import { Badge, Swatch, Text, type Tone } from "../../views/bits";
import { sessionName } from "../../views/sessionlink";
import { Table, type Column } from "../../views/table";
import { AwaitDrawer } from "./await";
import { keepOrder } from "./steady";
import { cell, textCell } from "../../views/cells";

const BANDS: Record<StuckRow["band"], [Tone, string, string]> = {
  silent: ["bad", "silent", "Its process has missed three heart-beats"],
  stuck: ["bad", "stuck", "Open for three times the p99 of its kind, or longer"],
  overdue: ["bad", "overdue", "Past its deadline"],
  slow: ["warn", "slow", "Beyond the p99 of its kind; healthy work gets there too"],
  fine: ["plain", "fine", "Within the p99 of its kind"],
  unknown: ["plain", "no score", "Fewer than 20 of its kind have finished"],
};

export function Stuck({ now, roles }: { now: Now; roles: Readonly<Record<string, string>> }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const isHovered = useRef(false);
  const shown = useRef<readonly StuckRow[]>([]);
  const box = useRef<HTMLDivElement>(null);
  // A row that is moved loses the focus, so it stays for the keyboard's sake too.
  const isHeld =
    isHovered.current || chosen !== null || box.current?.contains(document.activeElement);
  shown.current = isHeld ? keepOrder(shown.current, now.stuck, keyOf) : now.stuck;
  const columns = useMemo(() => columnsFor(now, roles, setChosen), [now, roles]);
  const row = now.stuck.find((one) => keyOf(one) === chosen);
  return (
    <div
      ref={box}
      onPointerEnter={() => (isHovered.current = true)}
      onPointerLeave={() => (isHovered.current = false)}
    >
      <Table
        label="Stuck and slow"
        columns={columns}
        rows={shown.current}
        rowKey={keyOf}
        limit={innerWidth < 700 ? 5 : 20}
        isChosen={(one) => keyOf(one) === chosen}
        onOpen={(one) => {
          if (one.session_id !== null) navigate(link("session", one.session_id));
        }}
      />
      {now.open_sessions > now.stuck.length && (
        <p class="dim">
          The most suspicious {now.stuck.length} of{" "}
          <a href={link("sessions", "", { f: "status:open" })}>
            {plural(now.open_sessions, "open session")}
          </a>
          .
        </p>
      )}
      {row && <AwaitDrawer row={row} at={now} onClose={() => setChosen(null)} />}
    </div>
  );
}

/** Say how many need a look. */
export function alarmText(now: Now): string {
  if (now.open_sessions === 0) return "nothing is open";
  return now.alarms === 0
    ? `none of ${grouped(now.open_sessions)} open needs a look`
    : `${grouped(now.alarms)} of ${grouped(now.open_sessions)} open need a look`;
}

function keyOf(row: StuckRow): string {
  return row.session_id ?? row.span_id;
}

/** Its task and sample; tries have a column of their own. */
function nameOf({ task_key, sample, session_id, name }: StuckRow): string {
  return sessionName({ task_key, sample }, session_id ?? name);
}

function columnsFor(
  at: Now,
  roles: Readonly<Record<string, string>>,
  onAwait: (key: string) => void,
): Column<StuckRow>[] {
  const rows = at.stuck;
  return [
    textCell(
      "State",
      (row) => row.band,
      (row) => {
        const [tone, word, why] = BANDS[row.band];
        return (
          <Badge tone={tone} title={why}>
            {word}
          </Badge>
        );
      },
    ),
    cell(
      "Score",
      (row) => row.score,
      (row) =>
        row.score === null ? (
          <span class="dim">–</span>
        ) : (
          `${row.is_approximate ? "~" : ""}${rate(row.score)}`
        ),
      "Age over the p99 of finished ones of its kind; ~ where few have finished",
    ),
    cell(
      "Age",
      (row) => row.age_ns,
      (row) => <Age ns={row.age_ns} at={at} />,
      "How long its innermost span has been open",
    ),
    cell(
      "Quiet",
      (row) => row.quiet_ns,
      (row) => <Age ns={row.quiet_ns} at={at} />,
      "Since it last showed progress",
    ),
    textCell("Session", nameOf, (row) =>
      row.session_id === null ? (
        <span class="dim">outside of sessions</span>
      ) : (
        <a href={link("session", row.session_id)} title={row.session_id}>
          <Text text={nameOf(row)} max={36} />
        </a>
      ),
    ),
    textCell(
      "Phase",
      (row) => `${row.name} ${row.detail ?? ""}`,
      (row) => (
        <span>
          <Swatch name={row.name} role={roles[row.name]} /> <Text text={row.name} max={24} />{" "}
          {row.detail && (
            <span class="dim">
              <Text text={row.detail} max={32} />
            </span>
          )}
        </span>
      ),
    ),
    textCell(
      "Host, replica",
      (row) => `${row.host} ${row.pool}`,
      (row) => (
        <span>
          <Text text={row.host} max={24} />{" "}
          <span class="dim">{row.pool && <Text text={row.pool} max={24} />}</span>
        </span>
      ),
    ),
    cell("Attempt", (row) => row.attempt + 1),
    cell(
      "Deadline",
      (row) => row.deadline_ns,
      (row) => <Until ns={row.deadline_ns} at={at} />,
    ),
    textCell(
      "Last error",
      (row) => row.last_error,
      (row) => <Text text={row.last_error} max={40} />,
      "Inside the session, or what ended its previous attempt",
    ),
    ...(at.is_alive || rows.some((row) => row.stack.length) ? [awaitColumn(onAwait)] : []),
  ];
}

/** Nobody can be asked in a run that is over, and not every one has recorded where it hung. */
function awaitColumn(onAwait: (key: string) => void): Column<StuckRow> {
  return textCell(
    "Await",
    (row) => row.line,
    (row) => (
      <button
        onClick={() => onAwait(keyOf(row))}
        aria-label={`Await stack of ${visible(row.task_key ?? row.name)}`}
      >
        Await
      </button>
    ),
  );
}
