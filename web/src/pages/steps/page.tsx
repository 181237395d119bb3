/** The steps of a run: which was slow, and since when. */
import { isImported } from "../../model/origin";
import { useAnswer } from "../../state/answer";
import { link, param, setParams } from "../../state/route";
import { Choice } from "../../views/choice";
import { Columns } from "../../views/columns";
import { Lazy } from "../../views/lazy";
import { Panel } from "../../views/panel";
import type { PageProps } from "../index";
import { barsOf, type Measure } from "./bars";
import { ChangesPanel } from "./changes";
import { ErrorsPanel } from "./errors";
import { ListPanel } from "./list";
import { MetricsPanel } from "./metrics";
import { SyncByStep } from "./sync";

const MEASURES: readonly [Measure, string][] = [
  ["path", "Critical path"],
  ["slots", "Slot time"],
];
const LAST: readonly [string, string][] = [
  ["20", "20"],
  ["50", "50"],
  ["200", "200"],
];
/** Older steps cost the server time and are seldom asked for. */
const USUAL = "20";

export function StepsPage({ overview }: PageProps) {
  const last = param("last", USUAL);
  const measure = param("bars", "path") === "slots" ? "slots" : "path";
  const steps = useAnswer("steps", { last });
  const series = useAnswer("step_series", { last });
  return (
    <div class="page">
      <header class="row">
        <h1>Steps</h1>
        {overview.steps.running !== null && (
          <a href={link("step", overview.steps.running)}>
            Step {overview.steps.running} is running
          </a>
        )}
        {overview.steps.count > 20 && (
          <span class="spread row">
            Last
            <Choice
              label="How many steps"
              options={LAST}
              chosen={last}
              onChoose={(next) =>
                setParams({ last: next === USUAL ? null : next }, { replace: true })
              }
            />
          </span>
        )}
      </header>
      <Panel
        title="Bars"
        hint={
          measure === "path"
            ? "wall time of each step by what its end waited for"
            : "slot time, which is slots times wall: busy by phase, idle by cause"
        }
        asked={steps}
        empty={(data) => (data.steps.length ? null : <NoSteps overview={overview} />)}
        actions={
          <Choice
            label="What bars show"
            options={MEASURES}
            chosen={measure}
            onChoose={(next) =>
              setParams({ bars: next === "path" ? null : next }, { replace: true })
            }
          />
        }
      >
        {(data) => (
          <Columns
            label="Steps; arrow keys move, Enter opens"
            columns={barsOf(
              data.steps.map((one) => one.summary),
              measure,
              series.data,
              overview,
            )}
            isOrdered={measure === "slots"}
          />
        )}
      </Panel>
      <ListPanel asked={steps} />
      <div class="columns">
        <ChangesPanel asked={steps} />
        <ErrorsPanel asked={series} />
      </div>
      <Lazy height={240}>
        {() => (
          <div class="columns">
            <SyncByStep asked={series} />
            <MetricsPanel asked={steps} overview={overview} />
          </div>
        )}
      </Lazy>
    </div>
  );
}

function NoSteps({ overview }: Pick<PageProps, "overview">) {
  const sessions = <a href={link("sessions")}>sessions</a>;
  if (isImported(overview)) return <>The imported files tell of no steps; see the {sessions}.</>;
  return (
    <>
      The run records no steps. Wrap the trainer's loop in <code>rollscope.step(n)</code>, or see
      the {sessions}.
    </>
  );
}
