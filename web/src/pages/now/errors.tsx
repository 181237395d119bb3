/** Which errors ended spans lately: their kinds, where, since when, and one of them each. */
import { useMemo } from "preact/hooks";
import type { ErrorLine, Now } from "../../model/answers";
import { link } from "../../state/route";
import { Age, type AsOf } from "../../views/age";
import { Text } from "../../views/bits";
import { cell, countCell, textCell } from "../../views/cells";
import { Table, type Column } from "../../views/table";

export function Errors({ now }: { now: Now }) {
  const columns = useMemo(() => columnsFor(now), [now]);
  return (
    <Table
      label="Errors"
      columns={columns}
      rows={now.errors.lines}
      rowKey={(one) => `${one.kind} ${one.name}`}
      limit={10}
    />
  );
}

function columnsFor(at: Now): Column<ErrorLine>[] {
  const asOf: AsOf = { now_ns: at.now_ns, is_alive: at.is_alive };
  const ago = (ns: number) => (
    <span class="nowrap">
      <Age ns={Math.max(0, at.now_ns - ns)} at={asOf} /> {at.is_alive ? "ago" : "before"}
    </span>
  );
  return [
    textCell(
      "Kind",
      (one) => one.kind,
      (one) => <Text text={one.kind} max={40} />,
    ),
    countCell("Count", (one) => one.count),
    textCell(
      "Phase",
      (one) => one.name,
      (one) => <Text text={one.name} max={32} />,
    ),
    cell(
      "First",
      (one) => one.first_ns,
      (one) => ago(one.first_ns),
    ),
    cell(
      "Last",
      (one) => one.last_ns,
      (one) => ago(one.last_ns),
    ),
    textCell(
      "Latest",
      (one) => one.example,
      (one) => <Example line={one} />,
    ),
  ];
}

function Example({ line }: { line: ErrorLine }) {
  const text = <Text text={line.example} max={70} />;
  if (line.example_session === null) return text;
  return <a href={link("session", line.example_session)}>{text}</a>;
}
