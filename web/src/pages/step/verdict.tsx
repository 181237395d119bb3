/** Why the step took as long as it did, in sentences that open what they are about. */
import type { CaseFinding, Evidence, StepAnswer } from "../../model/answers";
import { duration, percent, plural } from "../../model/format";
import { term } from "../../model/term";
import type { Asked } from "../../state/answer";
import { link } from "../../state/route";
import { Badge, Sentence, Text } from "../../views/bits";
import { Panel } from "../../views/panel";
import { sessionsHref } from "../../views/sessionlink";

/** Rules about what can be trusted; they are no causes. */
const TRUST = new Set(["data", "clock"]);

export function VerdictPanel({ asked, step }: { asked: Asked<StepAnswer>; step: number }) {
  return (
    <Panel title="Verdict" asked={asked}>
      {(data) => (
        <>
          <p class="opening">
            <Sentence text={data.verdict.opening} />
          </p>
          {data.summary.is_open && <Running answer={data} />}
          <ol class="causes">
            {data.verdict.findings.map((one, i) => (
              <FindingLine key={i} finding={one} wall={data.summary.wall_ns} step={step} />
            ))}
          </ol>
          {data.verdict.closing && (
            <p>
              <Sentence text={data.verdict.closing} />
            </p>
          )}
        </>
      )}
    </Panel>
  );
}

/** A step that goes on: what is said of it is what is known so far. */
function Running({ answer: { eta, parts } }: { answer: StepAnswer }) {
  const now = parts.path.segments[parts.path.segments.length - 1]?.end_ns ?? 0;
  const end = eta?.step_end;
  const left = (ns: number): string => duration(Math.max(ns - now, 0));
  return (
    <p>
      <Badge tone="warn">running</Badge> This is what is known so far.{" "}
      {end && `It likely ends in ${left(end.p10_ns)} to ${left(end.p90_ns)}. `}
      {eta && eta.outliers.length > 0 && (
        <>
          {eta.at_least_ns !== null && `At least ${duration(eta.at_least_ns)} more; `}
          <a href={sessionsHref(eta.outliers)}>{plural(eta.outliers.length, "session")}</a> older
          than anything seen.
        </>
      )}
    </p>
  );
}

function FindingLine(props: { finding: CaseFinding; wall: number; step: number }) {
  const { finding, wall, step } = props;
  return (
    <li class="cause">
      <p>
        <Badge tone={TRUST.has(finding.rule) ? "plain" : "warn"} title="The rule that found it">
          {finding.rule}
        </Badge>{" "}
        <Sentence text={finding.sentence} />{" "}
        {finding.stake_ns > 0 && (
          <span class="dim nowrap" title="Wall time that would be won at most">
            {duration(finding.stake_ns)} at stake ({percent(finding.stake_ns / (wall || 1))})
          </span>
        )}
      </p>
      <p class="dim">
        Try: <Sentence text={finding.try_next} />{" "}
        {evidenceLinks(finding.evidence, step).map(([text, href]) => (
          <a key={href} class="evidence" href={href}>
            <Text text={text} max={40} />
          </a>
        ))}
      </p>
    </li>
  );
}

/** What a finding is about, each with its address. */
function evidenceLinks(evidence: Evidence, step: number): [string, string][] {
  const links: [string, string][] = [];
  const inStep = (text: string): string =>
    link("sessions", "", { f: `${text} step:${step}`, sort: "-ran" });
  const { sessions, phase, detail, pool, host, process } = evidence;
  if (sessions.length) links.push([plural(sessions.length, "session"), sessionsHref(sessions)]);
  if (phase !== null) {
    const text =
      detail === null ? term("phase", phase) : `${term("phase", phase)} ${term("detail", detail)}`;
    links.push([detail === null ? phase : `${phase} ${detail}`, inStep(text)]);
  }
  if (pool !== null) links.push([pool, inStep(term("pool", pool))]);
  if (host !== null) links.push([host, inStep(term("host", host))]);
  else if (process !== null) links.push(["its process", link("health")]);
  return links;
}
