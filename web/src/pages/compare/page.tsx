/** Compare: two runs, two stretches of steps, or two selections of sessions. */
import { param, setParams } from "../../state/route";
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

export function ComparePage({ overview }: PageProps) {
  const compared = fromAddress();
  const { kind, other, stepsA, stepsB, filterA, filterB } = compared;
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
