/** Search hits: sessions that match the filter carry a mark, whatever the zoom. */

import { FLAG } from "../model/frame";
import { idOf } from "../model/deltas";
import type { SceneData } from "./scene";

/** Mark the sessions of these ids, and no others; null takes all marks away. */
export function markHits(data: SceneData | null, ids: readonly string[] | null): void {
  if (data === null) {
    return;
  }
  const wanted = new Set(ids);
  const sessions = data.sessionIds.length / 2;
  const isHit = new Uint8Array(sessions);
  for (let session = 0; ids !== null && session < sessions; session++) {
    isHit[session] = wanted.has(idOf(data.sessionIds, session)) ? 1 : 0;
  }
  for (const { count, flags, session } of data.tables) {
    for (let index = 0; index < count; index++) {
      if ((flags[index]! & FLAG.session) !== 0) {
        const hit = isHit[session[index]!] === 1 ? FLAG.hit : 0;
        flags[index] = (flags[index]! & ~FLAG.hit) | hit;
      }
    }
  }
}
