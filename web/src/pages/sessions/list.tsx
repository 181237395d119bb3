/** The list of sessions: as long as the run has, in any order, out as a file or into a comparison. */
import { useState } from "preact/hooks";
import type { Overview } from "../../model/answers";
import { grouped, plural } from "../../model/format";
import { term } from "../../model/term";
import { useAnswer } from "../../state/answer";
import { useKeys } from "../../state/keys";
import { link, navigate, param, runName } from "../../state/route";
import { marked } from "../../state/selection";
import { source } from "../../state/source";
import { saveFile } from "../../views/copy";
import { Panel } from "../../views/panel";
import { toCsv } from "../../views/rows";
import { listColumns } from "./columns";
import type { Within } from "./page";
import { MOST_ROWS, PAGE, VirtualRows } from "./rows";

const MOST_SAVED = 1000;

export function SessionsPanel({ overview, within }: { overview: Overview; within: Within }) {
  const params = { ...within, sort: param("sort", "-start") };
  const key = JSON.stringify(params);
  const [isHeld, setHeld] = useState(false);
  // Rows stay where they are while somebody is about to pick one.
  const follow = !isHeld;
  const asked = useAnswer("sessions", { ...params, limit: PAGE, offset: 0 }, { follow });
  const matched = asked.data?.matched ?? 0;
  const ids = marked.value;
  const compare = (): void => {
    const chosen = marked.peek(); // a key may come before the last mark is drawn
    if (chosen.length) navigate(link("compare", "", { fa: term("id", ...chosen) }));
  };
  const save = async (isCsv: boolean): Promise<void> => {
    const wanted = { ...params, limit: MOST_SAVED };
    const { sessions } = await source().answer(runName.peek(), "sessions", wanted);
    if (isCsv) saveFile("sessions.csv", "text/csv", toCsv(listColumns(overview), sessions));
    else saveFile("sessions.json", "application/json", JSON.stringify(sessions));
  };
  useKeys([{ key: "c", label: "Compare the marked sessions", run: compare }], [ids]);
  return (
    <Panel
      title="List"
      hint={`${plural(matched, "session")}${matched > MOST_ROWS ? `, the first ${grouped(MOST_ROWS)} are listed` : ""}`}
      asked={asked}
      actions={
        <>
          {ids.length > 0 && (
            <>
              {ids.length} marked
              <button onClick={compare}>Compare</button>
              <button onClick={() => (marked.value = [])}>Unmark</button>
            </>
          )}
          {[true, false].map((isCsv) => (
            <button
              key={isCsv}
              class="link"
              title={`The first ${MOST_SAVED}`}
              onClick={() => void save(isCsv)}
            >
              {isCsv ? "CSV" : "JSON"}
            </button>
          ))}
        </>
      }
    >
      {() => (
        <VirtualRows
          key={key}
          overview={overview}
          params={params}
          matched={matched}
          follow={follow}
          onHold={setHeld}
        />
      )}
    </Panel>
  );
}
