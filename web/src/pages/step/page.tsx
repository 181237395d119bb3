/** One step: why it took as long as it did. */
import { useRef } from "preact/hooks";
import type { StepAnswer } from "../../model/answers";
import { duration, grouped, percent, plural } from "../../model/format";
import { formatRange } from "../../model/route";
import { useAnswer } from "../../state/answer";
import { useKeys } from "../../state/keys";
import { link, navigate } from "../../state/route";
import { source } from "../../state/source";
import { Badge } from "../../views/bits";
import { Lazy } from "../../views/lazy";
import { Failure } from "../../views/panel";
import type { PageProps } from "../index";
import { DurationsPanel } from "./durations";
import { GroupsPanel } from "./groups";
import { HotspotsPanel } from "./hotspots";
import { PathPanel } from "./path";
import { ReplicasPanel } from "./replicas";
import { ServicesPanel } from "./services";
import { SlowestPanel } from "./slowest";
import { StalenessPanel } from "./staleness";
import { SyncPanel } from "./sync";
import { TailPanel } from "./tail";
import { VerdictPanel } from "./verdict";
import { WaitsPanel } from "./waits";
import { SelectionPanel, WastePanel } from "./waste";
import { WhatIfPanel } from "./whatif";

export function StepPage({ overview, arg }: PageProps) {
  const { steps } = overview;
  if (steps.last === null) {
    return (
      <div class="page">
        <h1>Step</h1>
        <p class="dim">
          The run records no steps, so there is nothing to divide its time by. Wrap the trainer's
          loop in <code>rollscope.step(n)</code>, or see the <a href={link("sessions")}>sessions</a>
          .
        </p>
      </div>
    );
  }
  return <KnownStep overview={overview} step={arg === "" ? steps.last : Number(arg)} />;
}

function KnownStep({ overview, step }: { overview: PageProps["overview"]; step: number }) {
  // Verdicts and consumption come late; older steps do not change any more.
  const follow = overview.is_alive && step >= (overview.steps.last ?? 0) - 1;
  const asked = useAnswer("step", { step: String(step) }, { follow });
  const { data } = asked;
  // Known before the answer is there, so that a key pressed at once is not lost.
  const latest = useRef(data);
  latest.current = data;
  const go = (to: number | null | undefined): void => {
    if (to !== null && to !== undefined) navigate(link("step", to));
  };
  useKeys([
    { key: "[", label: "Previous step", run: () => go(latest.current?.previous) },
    { key: "]", label: "Next step", run: () => go(latest.current?.following) },
  ]);
  if (data === null && asked.error) {
    return (
      <div class="page">
        <h1>Step {Number.isNaN(step) ? "" : step}</h1>
        <Failure title="step" error={asked.error} />
        <p>
          <a href={link("steps")}>All steps</a>
        </p>
      </div>
    );
  }
  const scope = String(step);
  return (
    <div class="page step-page">
      <StepHead step={step} answer={data} overview={overview} />
      <VerdictPanel asked={asked} step={step} />
      <PathPanel asked={asked} overview={overview} />
      <WaitsPanel asked={asked} step={step} />
      <Lazy height={420}>{() => <TailPanel asked={asked} step={step} follow={follow} />}</Lazy>
      <Lazy height={340}>
        {() => <DurationsPanel asked={asked} scope={scope} overview={overview} follow={follow} />}
      </Lazy>
      <Lazy height={300}>{() => <HotspotsPanel scope={scope} follow={follow} />}</Lazy>
      <Lazy height={200}>{() => <ServicesPanel scope={scope} follow={follow} />}</Lazy>
      <Lazy height={600}>
        {() => (
          <>
            <div class="columns">
              <ReplicasPanel asked={asked} step={step} />
              <SyncPanel asked={asked} />
            </div>
            <StalenessPanel asked={asked} step={step} />
            <div class="columns">
              <WastePanel asked={asked} step={step} />
              <SelectionPanel asked={asked} />
            </div>
          </>
        )}
      </Lazy>
      <Lazy height={240}>{() => <GroupsPanel scope={scope} follow={follow} />}</Lazy>
      <Lazy height={400}>
        {() => (
          <div class="columns">
            <WhatIfPanel asked={asked} />
            <SlowestPanel asked={asked} step={step} />
          </div>
        )}
      </Lazy>
    </div>
  );
}

function StepHead(props: {
  step: number;
  answer: StepAnswer | null;
  overview: PageProps["overview"];
}) {
  const { step, answer, overview } = props;
  return (
    <header class="step-head row">
      <h1>Step {step}</h1>
      <StepButton to={answer?.previous} text="‹ Previous" hint="Previous step ([)" />
      <StepButton to={answer?.following} text="Next ›" hint="Next step (])" />
      {answer && (
        <>
          <span>{duration(answer.summary.wall_ns)}</span>
          <a href={link("sessions", "", { f: `step:${step}` })}>
            {plural(answer.summary.sessions, "session")}
          </a>
          <span class="dim">{outcomes(answer)}</span>
          {answer.summary.is_open && <Badge tone="warn">running</Badge>}
          {!answer.parts.waste.is_consumption_recorded && (
            <Badge title="No consumption is recorded: sessions count for the step that sent them out">
              by dispatch
            </Badge>
          )}
          <span class="spread row">
            <a href={timelineOf(answer, overview.first_ns)}>Timeline</a>
            {answer.previous !== null && source().isLive && (
              <a
                href={link("compare", "", {
                  sa: String(answer.previous),
                  sb: String(step),
                })}
              >
                Compare with {answer.previous}
              </a>
            )}
          </span>
        </>
      )}
    </header>
  );
}

function StepButton(props: { to: number | null | undefined; text: string; hint: string }) {
  const { to } = props;
  if (to === null || to === undefined) return <button disabled>{props.text}</button>;
  return (
    <a class="button" href={link("step", to)} title={props.hint}>
      {props.text}
    </a>
  );
}

function outcomes({ summary }: StepAnswer): string {
  return Object.entries(summary.outcomes)
    .map(([name, count]) => `${grouped(count)} ${name === "none" ? "without outcome" : name}`)
    .concat(summary.waste_ns > 0 ? [`${percent(summary.waste_share)} wasted`] : [])
    .join(" · ");
}

function timelineOf(answer: StepAnswer, first: number): string {
  const { segments } = answer.parts.path;
  const [from, to] = [segments[0], segments[segments.length - 1]];
  if (!from || !to) return link("timeline");
  const t = formatRange({ from: (from.start_ns - first) / 1e9, to: (to.end_ns - first) / 1e9 });
  return link("timeline", "", { t });
}
