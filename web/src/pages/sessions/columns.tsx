/** What the list says of a session, column by column. */
import type { Overview, SessionLine } from "../../model/answers";
import { link } from "../../state/route";
import { Outcome, StackBar, Text, Time } from "../../views/bits";
import { countCell, durationCell, numberCell, rewardCell } from "../../views/cells";
import { roleOf } from "../../views/nameshare";
import { SessionLink, sessionName } from "../../views/sessionlink";
import type { Column } from "../../views/rows";

/** Columns that the question can sort by. */
export const SORTED: readonly string[] = ["waited", "ran", "tokens", "reward", "start"];

/** Leave out columns in which no session has anything to say; a first try says nothing. */
export function filledColumns(
  columns: readonly Column<SessionLine>[],
  lines: readonly SessionLine[],
): string[] {
  const says = ({ id, value }: Column<SessionLine>, line: SessionLine): boolean =>
    ![null, undefined, "–", id === "try" ? 1 : null].includes(value(line));
  return columns.filter((one) => lines.some((line) => says(one, line))).map((one) => one.id);
}

/** What became of it, as far as that is known. */
export function fateOf(row: { status: string; outcome: string | null }): string {
  return row.outcome ?? row.status;
}

function versions({ row }: SessionLine): string {
  const known = [row.version_start, row.version_end].filter((one) => one !== null);
  return [...new Set(known)].join("–") || "–";
}

export function listColumns(overview: Overview): readonly Column<SessionLine>[] {
  return [
    {
      id: "session",
      title: "Session",
      value: ({ row }) => sessionName(row, row.span_id),
      render: ({ row }) => <SessionLink session={row} id={row.span_id} />,
    },
    {
      id: "step",
      title: "Step",
      hint: "consumed by, else dispatched by",
      value: ({ row }) => row.consumed_step ?? row.step,
      render: ({ row }) => {
        const step = row.consumed_step ?? row.step;
        if (step === null) return "unassigned";
        return (
          <a href={link("step", step)} title={row.consumed_step === null ? "by dispatch" : ""}>
            {step}
          </a>
        );
      },
    },
    {
      id: "outcome",
      title: "Outcome",
      value: ({ row }) => fateOf(row),
      render: ({ row }) => (
        <Outcome outcome={fateOf(row)} reason={row.reason && row.reason.slice(0, 60)} />
      ),
    },
    durationCell("Waited", ({ row }) => row.waited_ns, "from its submission to its start"),
    durationCell("Ran", (line) => line.ran_ns, "from its start to its end, or so far"),
    {
      id: "phases",
      title: "Phases",
      value: (line) => JSON.stringify(line.phases),
      render: (line) => (
        <StackBar
          label="Phases"
          parts={Object.entries({ ...line.phases, other: line.other_ns }).map(([label, value]) => ({
            label,
            value,
            role: roleOf(overview, label) ?? null,
          }))}
        />
      ),
    },
    durationCell("Other", (line) => line.other_ns, "no phase was open"),
    numberCell("Turns", ({ row }) => row.turns),
    countCell("Tokens in", ({ row }) => row.tokens_in),
    { ...countCell<SessionLine>("Tokens out", ({ row }) => row.tokens_out), id: "tokens" },
    rewardCell("Reward", ({ row }) => row.reward),
    { id: "versions", title: "Versions", value: versions },
    numberCell("Lag", (line) => line.lag, "when consumed, else at its end"),
    numberCell("Try", ({ row }) => row.attempt + 1),
    {
      id: "host",
      title: "Host",
      value: ({ row }) => row.host,
      render: ({ row }) => <Text text={row.host} max={24} />,
    },
    {
      id: "start",
      title: "Started",
      value: ({ row }) => row.start_ns,
      render: ({ row }) => <Time ns={row.start_ns} />,
    },
  ];
}
