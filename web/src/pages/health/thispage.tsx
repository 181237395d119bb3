/** What the page itself costs: its frames and its traffic. */
import { useEffect, useRef, useState } from "preact/hooks";
import { bytes, grouped } from "../../model/format";
import { linkState, second } from "../../state/live";
import { measureFrames, startCounting, traffic } from "../../state/traffic";

const KEPT_FRAMES = 300;
const LINKS: Readonly<Record<string, string>> = {
  connecting: "connecting",
  live: "event stream",
  polling: "asking every 2 s, since events do not come through",
  lost: "lost",
  file: "a file, no server",
};

// From the start, since the browser forgets.
startCounting();

interface Frames {
  median: number;
  longest: number;
  n: number;
}

/** Measure frames while shown, told once a second. */
function useFrames(): Frames | null {
  const kept = useRef<number[]>([]);
  const [frames, setFrames] = useState<Frames | null>(null);
  useEffect(
    () =>
      measureFrames((ms) => {
        kept.current.push(ms);
        if (kept.current.length > KEPT_FRAMES) kept.current.shift();
      }),
    [],
  );
  const tick = second.value;
  useEffect(() => {
    const sorted = [...kept.current].sort((a, b) => a - b);
    const n = sorted.length;
    if (n > 0) setFrames({ median: sorted[Math.ceil(n / 2) - 1]!, longest: sorted[n - 1]!, n });
  }, [tick]);
  return frames;
}

export function ThisPage() {
  const frames = useFrames();
  const { requests, bytes: received, recentBytes } = traffic.value;
  return (
    <dl class="facts">
      <div>
        <dt>Frame time</dt>
        <dd>
          {frames
            ? `median ${frames.median.toFixed(1)} ms, longest ${frames.longest.toFixed(0)} ms (n ${frames.n})`
            : "measuring"}
        </dd>
      </div>
      <div>
        <dt>Received</dt>
        <dd>
          {bytes(received)} in {grouped(requests)} requests
        </dd>
      </div>
      <div>
        <dt>Last minute</dt>
        <dd>{bytes(recentBytes / 60)}/s</dd>
      </div>
      <div>
        <dt>Link</dt>
        <dd>{LINKS[linkState.value]}</dd>
      </div>
    </dl>
  );
}
