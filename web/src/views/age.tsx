/** Ages that tick by the second with the server's clock, without asking again. */
import { duration } from "../model/format";
import { isPaused, nowNs, second } from "../state/live";

/** Moments that an answer is about: when it was made, and whether time goes on since. */
export interface AsOf {
  now_ns: number;
  is_alive: boolean;
}

/** Say how much later it is than an answer was made; nothing for a run that is over. */
export function useSince({ now_ns, is_alive }: AsOf): number {
  void second.value;
  return is_alive && !isPaused.value ? Math.max(0, nowNs() - now_ns) : 0;
}

/** Write an age in whole seconds, as it changes by those. */
export function wholeSeconds(ns: number): string {
  if (ns < 1e9) return "< 1 s";
  return ns < 99.95e9 ? `${Math.floor(ns / 1e9)} s` : duration(ns);
}

/** Something that grows: its length when the answer was made, and what has passed since.
 *
 * Once it grows no more it is written like every other length.
 */
export function Age({ ns, at }: { ns: number | null; at: AsOf }) {
  const since = useSince(at);
  if (ns === null) return <span class="dim">–</span>;
  return <span class="nowrap">{at.is_alive ? wholeSeconds(ns + since) : duration(ns)}</span>;
}

/** A moment ahead or behind, as a distance from now. */
export function Until({ ns, at }: { ns: number | null; at: AsOf }) {
  const since = useSince(at);
  if (ns === null) return <span class="dim">–</span>;
  const left = ns - at.now_ns - since;
  return (
    <span class={left < 0 ? "bad nowrap" : "nowrap"}>
      {left < 0 ? `${wholeSeconds(-left)} past` : `in ${wholeSeconds(left)}`}
    </span>
  );
}
