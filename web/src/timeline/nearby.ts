/** Which lanes a tile has to bring: those in view, and half a screen more above and below. */

import { boxesBetween } from "../model/lanes";
import { toRanges } from "../model/ranges";
import type { Scene } from "./scene";

/** Before it is known how high lanes are. */
const FIRST_LANES = 64;
/** Lanes are asked for so many at a time, so that a little scrolling needs no new tile. */
const CHUNK = 32;
const MOST_RANGES = 32;
/** Where all groups are collapsed; a parameter that is empty is left out of addresses. */
const NONE = "0-0";

/** Give the lanes near the view as ranges of positions, for a tile that begins at one of them. */
export function lanesNear(scene: Scene, firstLane: number): string {
  const layout = scene.layout.peek();
  const header = scene.data.peek()?.header;
  if (layout === null || header === undefined || header.first_lane !== firstLane) {
    return `${firstLane}-${firstLane + FIRST_LANES}`;
  }
  const { height } = scene.size.peek();
  const scroll = scene.scroll.peek();
  const boxes = [
    ...layout.pinned,
    ...boxesBetween(layout.lanes, scroll - height / 2, scroll + height * 1.5),
  ];
  const positions = boxes.map((box) => firstLane + box.lane);
  return toRanges(positions, CHUNK, MOST_RANGES) || NONE;
}
