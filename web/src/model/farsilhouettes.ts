/**
 * Silhouettes as the server makes them, for groups whose spans are not in the page.
 *
 * A tile brings them along for every group: how much was in flight at each pixel of its window, the
 * name that covered most of it, and the flags that must not be hidden.
 */

import { column, type Frame } from "./frame";
import { slotsOfNames } from "./slots";
import type { TimeWindow } from "./scale";

const THOUSANDTHS = 1000;

/** Columns hold `width` values for each group in turn; times are since the run's first moment. */
export interface FarSilhouettes extends TimeWindow {
  readonly width: number;
  readonly mean: Uint32Array;
  readonly flags: Uint8Array;
  readonly slot: Uint8Array;
  /** Sessions in flight on all lanes, thousandths, for each pixel. */
  readonly flight: Uint32Array;
  /** How many lanes each group has, in view or not. */
  readonly lanes: readonly number[];
}

/** What a stretch of a silhouette shows: the highest level, what it is drawn in, all flags. */
export interface FarLevel {
  /** Lanes in use, as a share of all. */
  share: number;
  slot: number;
  flags: number;
}

/** Read them from a frame; null if it has none. */
export function farSilhouettesOf(frame: Frame, baseNs: bigint): FarSilhouettes | null {
  const { header, columns } = frame;
  const window = header["window"] as readonly [string, string] | undefined;
  if (!columns.has("sil_name") || window === undefined) {
    return null;
  }
  const slots = slotsOfNames(header);
  const names = column(frame, "sil_name") as Uint16Array;
  return {
    t0: Number(BigInt(window[0]) - baseNs),
    t1: Number(BigInt(window[1]) - baseNs),
    width: Number(header["width"]),
    mean: column(frame, "sil_mean") as Uint32Array,
    flags: column(frame, "sil_flags") as Uint8Array,
    slot: Uint8Array.from(names, (name) => slots[name] ?? 0),
    flight: column(frame, "flight_mean") as Uint32Array,
    lanes: header.groups.map((group) => group.lanes),
  };
}

/** Say what a group shows between two moments; the window need not be that of the tile. */
export function farLevel(
  { t0, t1, width, mean, flags, slot, lanes }: FarSilhouettes,
  group: number,
  from: number,
  to: number,
  into: FarLevel,
): void {
  const perNs = width / (t1 - t0);
  const first = Math.max(Math.floor((from - t0) * perNs), 0);
  const last = Math.min(Math.ceil((to - t0) * perNs), width);
  let best = -1;
  into.flags = 0;
  for (let pixel = first; pixel < last; pixel++) {
    const at = group * width + pixel;
    into.flags |= flags[at] ?? 0;
    if (best < 0 || mean[at]! > mean[best]!) {
      best = at;
    }
  }
  into.share = best < 0 ? 0 : (mean[best] ?? 0) / THOUSANDTHS / Math.max(lanes[group] ?? 1, 1);
  into.slot = best < 0 ? 0 : (slot[best] ?? 0);
}

/** Give how many sessions were in flight at each pixel of a window. */
export function farFlight(far: FarSilhouettes, window: TimeWindow, pixels: number): Float32Array {
  const perPixel = (window.t1 - window.t0) / pixels;
  const perNs = far.width / (far.t1 - far.t0);
  return Float32Array.from({ length: pixels }, (_, x) => {
    const at = Math.floor((window.t0 + (x + 0.5) * perPixel - far.t0) * perNs);
    return (far.flight[at] ?? 0) / THOUSANDTHS;
  });
}
