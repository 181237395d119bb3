/** One bar for each step: its wall time by the critical path, or its slot time. */
import type { Overview, StepSeries, StepSummary } from "../../model/answers";
import { link } from "../../state/route";
import type { Column } from "../../views/columns";
import { nameShare } from "../../views/nameshare";
import type { Share } from "../../views/splitbar";
import { idleShare } from "../../views/waitshares";

/** What bars are made of; "other" stands last, whatever its size. */
export type Measure = "path" | "slots";

export function barsOf(
  summaries: readonly StepSummary[],
  measure: Measure,
  series: StepSeries | null,
  overview: Overview,
): Column[] {
  return summaries.map((one) => ({
    key: String(one.step),
    label: `${one.step}`,
    href: link("step", one.step ?? ""),
    total: measure === "path" ? one.wall_ns : one.slot_ns,
    isOpen: one.is_open,
    parts: measure === "path" ? pathParts(one, overview) : slotParts(one, series, overview),
  }));
}

function pathParts(one: StepSummary, overview: Overview): Share[] {
  return Object.entries(one.path_ns).map(([name, value]) => nameShare(overview, name, value));
}

/** Busy slots by phase where that is known, then idle ones by cause. */
function slotParts(one: StepSummary, series: StepSeries | null, overview: Overview): Share[] {
  const at = series ? series.steps.indexOf(one.step ?? -1) : -1;
  const busy =
    series && at >= 0
      ? Object.entries(series.busy_ns).map(([name, values]) =>
          nameShare(overview, name, values[at]!),
        )
      : [{ label: "busy", value: one.busy_ns, colour: "--accent" }];
  const idle = Object.entries(one.idle_ns).map(([cause, value]) => idleShare(cause, value));
  return [...busy, ...idle];
}
