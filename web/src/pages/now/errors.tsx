/** Which errors ended spans lately: their kinds, where, since when, and one of them each. */
import { useMemo } from "preact/hooks";
import type { ErrorLine, Now } from "../../model/answers";
import { link } from "../../state/route";
import { Age, type AsOf } from "../../views/age";
import { Text } from "../../views/bits";
import { countCell } from "../../views/cells";
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
    {
      id: "kind",
      title: "Kind",
      value: (one) => one.kind,
      render: (one) => <Text text={one.kind} max={40} />,
    },
    countCell("Count", (one) => one.count),
    {
      id: "name",
      title: "Phase",
      value: (one) => one.name,
      render: (one) => <Text text={one.name} max={32} />,
    },
    {
      id: "first",
      title: "First",
      align: "right",
      value: (one) => one.first_ns,
      render: (one) => ago(one.first_ns),
    },
    {
      id: "last",
      title: "Last",
      align: "right",
      value: (one) => one.last_ns,
      render: (one) => ago(one.last_ns),
    },
    {
      id: "example",
      title: "Latest",
      value: (one) => one.example,
      render: (one) => <Example line={one} />,
    },
  ];
}

function Example({ line }: { line: ErrorLine }) {
  const text = <Text text={line.example} max={70} />;
  if (line.example_session === null) return text;
  return <a href={link("session", line.example_session)}>{text}</a>;
}
