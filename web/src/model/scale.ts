/**
 * The time axis of the timeline: which window is shown, and how it moves.
 *
 * All times are nanoseconds since the run's first moment, as plain numbers: a double holds eleven
 * days of them exactly. Nothing here knows about pixels on a screen beyond a width.
 */

/** A window of time, in nanoseconds since the run's first moment. */
export interface TimeWindow {
  readonly t0: number;
  readonly t1: number;
}

/** The narrowest window that can be shown: 20 microseconds. */
export const NARROWEST_NS = 20_000;

/** Give the pixel at which a time is drawn. */
export function pixelOf(window: TimeWindow, width: number, time: number): number {
  return ((time - window.t0) / (window.t1 - window.t0)) * width;
}

/** Give the time under a pixel. */
export function timeAt(window: TimeWindow, width: number, pixel: number): number {
  return window.t0 + (pixel / width) * (window.t1 - window.t0);
}

/** Zoom by a factor (above 1: closer), keeping the time at `anchor` where it is. */
export function zoomAt(
  window: TimeWindow,
  anchor: number,
  factor: number,
  whole: TimeWindow,
): TimeWindow {
  const widest = (whole.t1 - whole.t0) * 1.1;
  const length = clamp((window.t1 - window.t0) / factor, NARROWEST_NS, widest);
  const share = (anchor - window.t0) / (window.t1 - window.t0);
  const t0 = anchor - share * length;
  return keepNear({ t0, t1: t0 + length }, whole);
}

/** Move the window by a share of its own length. */
export function panBy(window: TimeWindow, share: number, whole: TimeWindow): TimeWindow {
  const by = (window.t1 - window.t0) * share;
  return keepNear({ t0: window.t0 + by, t1: window.t1 + by }, whole);
}

/** Give a window around an interval, with a little room on both sides. */
export function fitAround(start: number, end: number, whole: TimeWindow): TimeWindow {
  const length = Math.max(end - start, NARROWEST_NS);
  return keepNear({ t0: start - length * 0.05, t1: start + length * 1.05 }, whole);
}

/** Keep a window such that some of the run is always in it. */
export function keepNear(window: TimeWindow, whole: TimeWindow): TimeWindow {
  const length = window.t1 - window.t0;
  const lowest = whole.t0 - length * 0.5;
  const highest = whole.t1 - length * 0.5;
  const t0 = clamp(window.t0, Math.min(lowest, highest), Math.max(lowest, highest));
  return { t0, t1: t0 + length };
}

/** Say whether two windows share any time. */
export function overlaps(a: TimeWindow, b: TimeWindow): boolean {
  return a.t0 < b.t1 && b.t0 < a.t1;
}

/**
 * Snap a window outwards to the grid of its power-of-two zoom level, so that near windows ask for
 * the same tile. The tile is at least as long as the window and at most about twice.
 */
export function snapWindow(window: TimeWindow, whole: TimeWindow): TimeWindow {
  const span = Math.max(whole.t1 - whole.t0, NARROWEST_NS);
  const length = Math.max(window.t1 - window.t0, 1);
  const level = Math.max(Math.floor(Math.log2(span / length)), 0);
  const cell = span / 2 ** (level + 2);
  const first = Math.floor((window.t0 - whole.t0) / cell);
  const last = Math.ceil((window.t1 - whole.t0) / cell);
  return {
    t0: Math.floor(whole.t0 + first * cell),
    t1: Math.ceil(whole.t0 + Math.max(last, first + 1) * cell),
  };
}

const STEPS = [1, 2, 5];
const SECOND = 1e9;
const CLOCK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200];

/** Give the times at which the axis has a mark: round ones, about `wanted` of them. */
export function axisTimes(window: TimeWindow, wanted: number): number[] {
  const step = roundStep((window.t1 - window.t0) / Math.max(wanted, 1));
  const times: number[] = [];
  for (let time = Math.ceil(window.t0 / step) * step; time <= window.t1; time += step) {
    times.push(time);
  }
  return times;
}

/** Give the smallest round step that is not below a length: 1-2-5, then those of a clock. */
export function roundStep(atLeast: number): number {
  if (atLeast <= SECOND) {
    const power = 10 ** Math.floor(Math.log10(Math.max(atLeast, 1)));
    const step = STEPS.find((each) => each * power >= atLeast) ?? 10;
    return step * power;
  }
  const seconds = atLeast / SECOND;
  const found = CLOCK_STEPS.find((each) => each >= seconds);
  return (found ?? Math.ceil(seconds / 86400) * 86400) * SECOND;
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
