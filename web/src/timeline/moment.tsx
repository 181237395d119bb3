/** What was the case at the cursor: sessions not started, running, ended, and running phases. */
import { duration, grouped, visible } from "../model/format";
import { momentAt } from "../model/hit";
import { asOf } from "../state/selection";
import type { Scene } from "./scene";

const MOST_PHASES = 6;

export function MomentLine({ scene }: { scene: Scene }) {
  const at = asOf.value;
  const data = scene.data.value;
  if (at === null || data === null) {
    return <p class="tl-moment dim">Arrow keys set a cursor in time; Shift+Space plays it.</p>;
  }
  const moment = momentAt(data.tables, at * 1e9, scene.now());
  const phases = [...moment.byName].sort((a, b) => b[1] - a[1]);
  return (
    <p class="tl-moment row" data-as-of={at}>
      <b>As of {duration(at * 1e9)}</b>
      <span>{grouped(moment.notStarted)} not started</span>
      <span>{grouped(moment.running)} running</span>
      <span>{grouped(moment.ended)} ended</span>
      {phases.slice(0, MOST_PHASES).map(([name, count]) => (
        <span key={name} class="dim">
          {visible(data.header.names[name] ?? "?")} {grouped(count)}
        </span>
      ))}
      {!data.isWhole && <span class="dim">(of what this zoom shows)</span>}
      <button
        class="link"
        onClick={() => {
          asOf.value = null;
        }}
      >
        Remove
      </button>
    </p>
  );
}
