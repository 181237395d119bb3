/** Sessions: finding them by what they have in common, by a picture, or in a long list. */
import type { Facets, Overview } from "../../model/answers";
import { parseFilter } from "../../model/filter";
import { duration, plural } from "../../model/format";
import { isImported } from "../../model/origin";
import { parseRange, type Range } from "../../model/route";
import { useAnswer } from "../../state/answer";
import { param, setParams } from "../../state/route";
import { Text } from "../../views/bits";
import { Choice } from "../../views/choice";
import type { PageProps } from "../index";
import { FacetsPanel } from "./facets";
import { SessionsPanel } from "./list";
import { ScatterPanel } from "./scatter";
import { TasksPanel } from "./tasks";

const TABS = [
  ["", "Sessions"],
  ["tasks", "Tasks"],
] as const;

/** Which sessions are meant, as questions take it. */
export type Within = Readonly<Record<string, string | number>>;

export function SessionsPage(props: PageProps) {
  // The filter box says what is wrong with it.
  if ("filter" in parseFilter(param("f"))) return <Found {...props} />;
  return (
    <div class="page">
      <h1>Sessions</h1>
      <p>Correct the filter above to see sessions.</p>
    </div>
  );
}

function Found({ overview }: PageProps) {
  const filter = param("f");
  const range = parseRange(param("t"));
  const within: Within = { filter, ...endedIn(overview, range) };
  const facets = useAnswer("facets", within);
  const isNothing = facets.data?.matched === 0;
  return (
    <div class="page sessions-page">
      <div class="row">
        <h1>Sessions</h1>
        <Choice
          label="Group by"
          options={TABS}
          chosen={param("tab")}
          onChoose={(tab) => setParams({ tab, sort: null })}
        />
        {range && (
          <button onClick={() => setParams({ t: null })}>
            ended from {duration(range.from * 1e9)} to {duration(range.to * 1e9)} ✕
          </button>
        )}
      </div>
      <FacetsPanel asked={facets} filter={filter} />
      <div class="sessions-main">
        {isNothing ? (
          <Nothing facets={facets.data!} overview={overview} />
        ) : param("tab") === "tasks" ? (
          <TasksPanel filter={filter} />
        ) : (
          <>
            <ScatterPanel overview={overview} within={within} filter={filter} />
            <SessionsPanel overview={overview} within={within} />
          </>
        )}
      </div>
    </div>
  );
}

function endedIn(overview: Overview, range: Range | null): Within {
  if (!range) return {};
  const at = (seconds: number): number => Math.round(overview.first_ns + seconds * 1e9);
  return { ended_from_ns: at(range.from), ended_to_ns: at(range.to) };
}

/** Why there is nothing: no sessions at all, or a condition that removed them. */
function Nothing(props: { facets: Facets; overview: Overview }) {
  const { of, terms } = props.facets;
  if (of === 0 && isImported(props.overview)) {
    return <p class="dim">The imported files tell of no sessions; see the timeline.</p>;
  }
  if (of === 0) {
    return (
      <p class="dim">
        No session has been recorded: <code>async with rollscope.session():</code> around a rollout
        records one.
      </p>
    );
  }
  const others = (at: number): string =>
    terms.flatMap((one, i) => (i === at ? [] : one.term)).join(" ");
  return (
    <section class="nothing" aria-label="Nothing for this filter">
      <p>
        <b>Nothing for this filter.</b> The run has {plural(of, "session")}.
      </p>
      <ul class="terms">
        {terms.map((one, i) => (
          <li key={one.term} class="row">
            <code>
              <Text text={one.term} max={60} />
            </code>
            <span class="dim">
              alone {one.alone}, without it {plural(one.without, "session")}
            </span>
            <button onClick={() => setParams({ f: others(i) })} aria-label={`Drop ${one.term}`}>
              Drop it
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
