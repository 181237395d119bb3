/** Sessions as points, by when they ended and how long they ran; or the same points as a table. */
import { useState } from "preact/hooks";
import type { Overview } from "../../model/answers";
import { withLengths } from "../../model/narrow";
import { formatRange } from "../../model/route";
import { useAnswer } from "../../state/answer";
import { setParams } from "../../state/route";
import { Legend } from "../../views/chart";
import { Panel } from "../../views/panel";
import type { Region } from "../../views/plane";
import { outcomeColours, PointsView } from "../../views/points";
import { PointsTable } from "../../views/pointstable";
import { TableButton } from "../../views/tablebutton";
import { Lines } from "../step/durations";
import type { Within } from "./page";

export function ScatterPanel(props: { overview: Overview; within: Within; filter: string }) {
  const asked = useAnswer("scatter", props.within);
  const [isTable, setTable] = useState(false);
  const since = (ns: number): number => (ns - props.overview.first_ns) / 1e9;
  const onRegion = (box: Region): void =>
    setParams({
      f: withLengths(props.filter, box.low, box.high),
      t: formatRange({ from: since(box.from), to: since(box.to) }),
    });
  return (
    <Panel
      title="When and how long"
      asked={asked}
      hint={asked.data && <Lines durations={asked.data} />}
      actions={<TableButton label="Sessions" isTable={isTable} onChange={setTable} />}
    >
      {(data) =>
        isTable ? (
          <PointsTable points={data.points} />
        ) : (
          <>
            <PointsView
              durations={data}
              by="end_ns"
              hint="Drag a box to list only those in it."
              region={null}
              onRegion={onRegion}
            />
            <Legend series={outcomeColours(data.points.outcome)} />
          </>
        )
      }
    </Panel>
  );
}
