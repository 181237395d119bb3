/** The critical path of a step, placed on the lanes of the timeline. */

import type { CriticalPath } from "../model/answers";
import { idOf } from "../model/deltas";
import { FLAG } from "../model/frame";
import type { SceneData } from "./scene";

export interface PathSegment {
  readonly t0: number;
  readonly t1: number;
  readonly name: string;
  /** Null where the segment's session is not among the spans that are here. */
  readonly lane: number | null;
  readonly isInferred: boolean;
}

/** Place the segments of a path; times become nanoseconds since the run's first moment. */
export function placePath(
  path: CriticalPath,
  data: SceneData | null,
  baseNs: bigint,
): PathSegment[] {
  const lanes = data === null ? new Map<string, number>() : lanesOfSessions(data);
  const base = Number(baseNs);
  return path.segments.map((segment) => ({
    t0: segment.start_ns - base,
    t1: segment.end_ns - base,
    name: segment.name,
    lane: segment.session_id === null ? null : (lanes.get(segment.session_id) ?? null),
    isInferred: segment.inferred,
  }));
}

/** The lane of each session, by its id. */
function lanesOfSessions({ tables, sessionIds }: SceneData): Map<string, number> {
  const lanes = new Map<string, number>();
  for (const table of tables) {
    for (let index = 0; index < table.count; index++) {
      const session = table.session[index]!;
      if ((table.flags[index]! & FLAG.session) !== 0 && session * 2 + 1 < sessionIds.length) {
        lanes.set(idOf(sessionIds, session), table.lane[index]!);
      }
    }
  }
  return lanes;
}
