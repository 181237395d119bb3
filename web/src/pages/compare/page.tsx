/** Compare: two runs, two stretches of steps, or two selections of sessions. */
import { useEffect } from "preact/hooks";
import type { Overview } from "../../model/answers";
import { param, setParams } from "../../state/route";
import { source } from "../../state/source";
import { Choice } from "../../views/choice";
import { Lazy } from "../../views/lazy";
import type { PageProps } from "../index";
import { Differences } from "../step/difference";
import { ComparedScopes, ComparedSelections } from "./phases";
import { SettingsPanel } from "./settings";
import { Sides } from "./sides";

const KINDS = [
  ["steps", "Steps"],
  ["runs", "Runs"],
  ["sessions", "Sessions"],
] as const;

/** What is compared, as the address has it. */
export interface Compared {
  kind: string;
  /** The other run; "" is this one. */
  other: string;
  stepsA: string;
  stepsB: string;
  filterA: string;
  filterB: string;
}

function fromAddress(): Compared {
  const [other, filterA] = [param("b"), param("fa")];
  return {
    kind: param("by") || (filterA ? "sessions" : other ? "runs" : "steps"),
    other,
    stepsA: param("sa"),
    stepsB: param("sb"),
    filterA,
    filterB: param("fb"),
  };
}

/** `step>=3 step<=5` for 3-5. */
function stepsTerm(range: string): string {
  const [first = "", last = first] = range.split("-");
  return `step>=${first} step<=${last}`;
}

/** The two newest steps that are over, the older one first. */
function newestSteps({ steps: { first, last, running } }: Overview): [string, string] | null {
  if (first === null || last === null) return null;
  const newest = running === last ? last - 1 : last;
  return newest > first ? [String(newest - 1), String(newest)] : null;
}

export function ComparePage(props: PageProps) {
  if (source().isLive) return <Comparison {...props} />;
  return (
    <div class="page">
      <h1>Compare</h1>
      <p class="dim">
        A report holds no comparisons: open the run itself with <code>rollscope view</code>.
      </p>
    </div>
  );
}

function Comparison({ overview }: PageProps) {
  const compared = fromAddress();
  const { kind, other, stepsA, stepsB, filterA, filterB } = compared;
  const isBlank = kind === "steps" && !stepsA && !stepsB;
  const newest = newestSteps(overview);
  useEffect(() => {
    // They stand in the address, and so stay when the next step is over.
    if (isBlank && newest) setParams({ sa: newest[0], sb: newest[1] }, { replace: true });
  }, [isBlank, newest === null]);
  return (
    <div class="page">
      <div class="row">
        <h1>Compare</h1>
        <Choice
          label="Compare"
          options={KINDS}
          chosen={kind}
          onChoose={(by) =>
            setParams({ by, b: null, sa: null, sb: null, fa: null, fb: null, phase: null })
          }
        />
      </div>
      <Sides key={location.hash} compared={compared} overview={overview} />
      {isBlank && !newest && (
        <p class="dim">It takes two steps that are over. Runs and sessions compare as well.</p>
      )}
      {kind === "sessions" && filterA && (
        <>
          <Differences scope="all" filter={filterA} against={filterB} />
          <ComparedSelections compared={compared} />
        </>
      )}
      {(kind === "runs" ? other : kind === "steps" && stepsA && stepsB) && (
        <>
          <ComparedScopes compared={compared} />
          {other ? (
            <SettingsPanel overview={overview} other={other} />
          ) : (
            <Lazy>
              {() => (
                <Differences scope="all" filter={stepsTerm(stepsB)} against={stepsTerm(stepsA)} />
              )}
            </Lazy>
          )}
        </>
      )}
    </div>
  );
}
