/** What this page itself costs: bytes it has received, and how long its frames take. */
import { signal } from "./signals";

export interface Traffic {
  requests: number;
  bytes: number;
  /** Received within the last minute. */
  recentBytes: number;
}

const RECENT_MS = 60_000;

export const traffic = signal<Traffic>({ requests: 0, bytes: 0, recentBytes: 0 });

let recent: { at: number; bytes: number }[] = [];

/** Count everything the page has fetched; the browser's own list forgets after 250 entries. */
export function startCounting(): void {
  new PerformanceObserver((list) => {
    const { requests, bytes } = traffic.peek();
    const sizes = list.getEntries().map((one) => ({
      at: (one as PerformanceResourceTiming).responseEnd,
      bytes: (one as PerformanceResourceTiming).transferSize,
    }));
    recent.push(...sizes);
    traffic.value = {
      requests: requests + sizes.length,
      bytes: bytes + sizes.reduce((sum, one) => sum + one.bytes, 0),
      recentBytes: recentSum(),
    };
  }).observe({ type: "resource", buffered: true });
}

/** Forget what is older than a minute, and add up the rest. */
function recentSum(): number {
  const since = performance.now() - RECENT_MS;
  recent = recent.filter((one) => one.at >= since);
  return recent.reduce((sum, one) => sum + one.bytes, 0);
}

/** Measure the time between frames until stopped. */
export function measureFrames(onFrame: (ms: number) => void): () => void {
  let last = 0;
  let handle = requestAnimationFrame(function frame(at) {
    if (last > 0) onFrame(at - last);
    last = at;
    handle = requestAnimationFrame(frame);
  });
  return () => {
    cancelAnimationFrame(handle);
  };
}
