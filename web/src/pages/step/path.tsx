/** The critical path as a waterfall: what the step waited for, one after another. */
import type { CriticalPath, Overview, Segment, StepAnswer } from "../../model/answers";
import { duration, percent, plural, visible } from "../../model/format";
import { formatRange } from "../../model/route";
import { toWaterfall } from "../../model/waterfall";
import type { Asked } from "../../state/answer";
import { link } from "../../state/route";
import { Badge } from "../../views/bits";
import { nameShare } from "../../views/nameshare";
import { Panel } from "../../views/panel";
import { sessionsHref } from "../../views/sessionlink";
import { SplitBar } from "../../views/splitbar";

const ROWS = 30;
const LEAST_SHARE = 0.001;

export function PathPanel(props: { asked: Asked<StepAnswer>; overview: Overview }) {
  return (
    <Panel
      title="Critical path"
      hint="what the end of the step waited for, back to its start; the parts make up its wall time"
      asked={props.asked}
      empty={({ parts }) => (parts.path.segments.length ? null : "The step has no length yet.")}
    >
      {({ parts: { path } }) => (
        <>
          <SplitBar
            label="Wall time by the critical path"
            total={path.wall_ns}
            shares={Object.entries(path.totals).map(([name, value]) =>
              nameShare(props.overview, name, value),
            )}
          />
          <WaterfallList path={path} overview={props.overview} />
          <p class="dim path-foot">
            {plural(path.hops, "hop")}, {path.inferred_hops} of them inferred from the order of
            time. {path.slack && <Slack path={path} />}
          </p>
        </>
      )}
    </Panel>
  );
}

function Slack({ path }: { path: CriticalPath }) {
  const slack = path.slack!;
  const next = slack.next_detail ? `${slack.next_name} ${slack.next_detail}` : slack.next_name;
  return (
    <>
      Without <a href={sessionsHref(slack.sessions)}>{plural(slack.sessions.length, "session")}</a>{" "}
      the step ends {duration(slack.earlier_ns)} earlier; then{" "}
      <a href={link("session", slack.next_session)}>{visible(next)}</a> is next.
    </>
  );
}

function WaterfallList({ path, overview }: { path: CriticalPath; overview: Overview }) {
  const { rows, restCount, restNs } = toWaterfall(path.segments, ROWS, LEAST_SHARE);
  return (
    <ol class="waterfall" aria-label="Critical path, in order of time">
      {rows.map((segment) => (
        <Row key={segment.start_ns} segment={segment} path={path} overview={overview} />
      ))}
      {restCount > 0 && (
        <li>
          <span class="dim">{plural(restCount, "shorter part")}</span>
          <span />
          <span class="waterfall-number">{duration(restNs)}</span>
          <span class="waterfall-number dim">{percent(restNs / path.wall_ns)}</span>
        </li>
      )}
    </ol>
  );
}

function Row(props: { segment: Segment; path: CriticalPath; overview: Overview }) {
  const { segment, path, overview } = props;
  const length = segment.end_ns - segment.start_ns;
  const { colour, texture } = nameShare(overview, segment.name, length);
  const since = (ns: number): number => (ns - overview.first_ns) / 1e9;
  const range = formatRange({ from: since(segment.start_ns), to: since(segment.end_ns) });
  return (
    <li>
      <span class="waterfall-name">
        <SegmentName segment={segment} />
        {segment.inferred && (
          <Badge title="On the path by the order of time, not by a recorded link">inferred</Badge>
        )}
      </span>
      <a
        class="waterfall-track"
        aria-label="Show on the timeline"
        href={link("timeline", "", { t: range })}
      >
        <i
          class={texture ?? ""}
          style={{
            left: `${((segment.start_ns - path.segments[0]!.start_ns) / path.wall_ns) * 100}%`,
            width: `${(length / path.wall_ns) * 100}%`,
            backgroundColor: `var(${colour})`,
          }}
        />
      </a>
      <span class="waterfall-number">{duration(length)}</span>
      <span class="waterfall-number dim">{percent(length / path.wall_ns)}</span>
    </li>
  );
}

function SegmentName({ segment }: { segment: Segment }) {
  const { name, within, detail } = segment;
  const text = visible(
    `${within && within !== name ? `${within} › ` : ""}${name}${detail ? ` ${detail}` : ""}`,
  );
  if (segment.session_id === null) return <span title={text}>{text}</span>;
  return (
    <a href={link("session", segment.session_id)} title={text}>
      {text}
    </a>
  );
}
