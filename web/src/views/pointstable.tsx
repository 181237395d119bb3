/** The table of sessions that are drawn as points. */
import type { Points } from "../model/answers";
import { link } from "../state/route";
import { Outcome, Time } from "./bits";
import { cell, durationCell, textCell } from "./cells";
import { type Column, Table } from "./table";

interface Point {
  session: string;
  start_ns: number;
  end_ns: number;
  ran_ns: number;
  outcome: string;
  is_flagged: boolean;
}

const COLUMNS: readonly Column<Point>[] = [
  textCell(
    "Session",
    (row) => row.session,
    (row) => <a href={link("session", row.session)}>{row.session}</a>,
  ),
  timeCell("Started", (row) => row.start_ns),
  timeCell("Ended", (row) => row.end_ns),
  durationCell("Ran", (row) => row.ran_ns),
  textCell(
    "Outcome",
    (row) => row.outcome,
    (row) => <Outcome outcome={row.outcome} />,
  ),
  textCell("Ringed", (row) => (row.is_flagged ? "yes" : ""), undefined, "went wrong or hangs"),
];

function timeCell(title: string, value: (row: Point) => number): Column<Point> {
  return cell(title, value, (row) => <Time ns={value(row)} />);
}

export function PointsTable({ points }: { points: Points }) {
  const rows = points.sessions.map((session, i) => ({
    session,
    start_ns: points.start_ns[i]!,
    end_ns: points.end_ns[i]!,
    ran_ns: points.ran_ns[i]!,
    outcome: points.outcome[i]!,
    is_flagged: points.is_flagged[i]!,
  }));
  return (
    <Table
      label="Sessions drawn"
      columns={COLUMNS}
      rows={rows}
      rowKey={(row) => row.session}
      limit={20}
    />
  );
}
