/** Timeline: what happened when, where; its choices are in the link. */
import { useEffect, useState } from "preact/hooks";
import type { Answers } from "../../model/answers";
import type { AnswerName, Params } from "../../model/source";
import { param, runName } from "../../state/route";
import { source } from "../../state/source";
import { Timeline } from "../../timeline/timeline";
import { GROUPINGS } from "../../timeline/toolbar";
import type { PageProps } from "../index";

const MOST_HITS = 2000;
const TRACK_POINTS = 600;

export function TimelinePage({ overview }: PageProps) {
  const asked = param("by", "host");
  const by = GROUPINGS.find((one) => one === asked) ?? "host";
  const [filter, step, track] = [param("f"), param("step"), param("track")];
  const metrics = useOptional("metrics", {});
  const found = useOptional("sessions", filter ? { filter, scope: "all", limit: MOST_HITS } : null);
  const path = useOptional("step", step ? { step } : null);
  const series = useOptional(
    "series",
    track ? { name: track, axis: "time", points: TRACK_POINTS } : null,
  );
  return (
    <div class="page tl-page">
      <h1 class="visually-hidden">Timeline</h1>
      <Timeline
        key={by}
        overview={overview}
        by={by}
        path={path?.parts.path ?? null}
        metrics={metrics}
        metric={series}
        hits={found ? found.sessions.map((line) => line.row.span_id) : null}
      />
    </div>
  );
}

/** Ask a question once, if there is something to ask; what fails is simply not drawn. */
function useOptional<N extends AnswerName>(name: N, params: Params | null): Answers[N] | null {
  const [answer, setAnswer] = useState<Answers[N] | null>(null);
  const run = runName.value;
  const key = `${run} ${JSON.stringify(params)}`;
  useEffect(() => {
    setAnswer(null);
    if (params === null) return;
    const abort = new AbortController();
    source()
      .answer(run, name, params, abort.signal)
      .then((got) => setAnswer(got))
      .catch(() => setAnswer(null));
    return () => {
      abort.abort();
    };
  }, [key, name]);
  return answer;
}
