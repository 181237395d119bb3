/** How numbers are written, everywhere the same: 820 ms, 1.24 s, 3 m 12 s, 2.1 h. */

const NS = { us: 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9, d: 86400e9 } as const;

function significant(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95) return value.toFixed(0);
  return size >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

function whole(value: number, digits: number): string {
  const text = value.toFixed(digits);
  return digits > 0 ? text.replace(/\.?0+$/, "") : text;
}

/** Write how many units there are, rounded as the sentences from Python are: a half goes up. */
function inUnits(ns: number, unit: number, digits: number): string {
  const parts = 10 ** digits;
  return (Math.round(ns / (unit / parts)) / parts).toFixed(digits);
}

/** Write a duration in nanoseconds. */
export function duration(ns: number | null | undefined): string {
  if (ns === null || ns === undefined || Number.isNaN(ns)) return "–";
  if (ns < 0) return `−${duration(-ns)}`;
  if (ns === 0) return "0 s";
  if (ns < NS.us) return `${ns.toFixed(0)} ns`;
  for (const [name, unit] of [
    ["µs", NS.us],
    ["ms", NS.ms],
  ] as const) {
    if (ns < 999.5 * unit)
      return `${inUnits(ns, unit, ns < 10 * unit ? 1 : 0).replace(/\.0$/, "")} ${name}`;
  }
  if (ns < 99.95 * NS.s) return `${inUnits(ns, NS.s, ns < 9.995 * NS.s ? 2 : 1)} s`;
  const seconds = Math.round(ns / NS.s);
  if (seconds < 3600)
    return `${Math.floor(seconds / 60)} m ${String(seconds % 60).padStart(2, "0")} s`;
  return ns < NS.d ? `${inUnits(ns, NS.h, 1)} h` : `${inUnits(ns, NS.d, 1)} d`;
}

/**
 * Write durations of one sum, all as finely as the whole, so that what is read adds up: the largest
 * part takes what is left over by rounding, if they add up to the whole at all.
 */
export function sum(
  wholeNs: number,
  partsNs: readonly number[],
): { whole: string; parts: string[] } {
  const [unit, name, digits] = fineness(Math.abs(wholeNs));
  const step = unit / 10 ** digits;
  const whole = Math.round(wholeNs / step);
  const parts = partsNs.map((ns) => Math.round(ns / step));
  const total = (values: readonly number[]) => values.reduce((all, one) => all + one, 0);
  if (parts.length > 0 && total(partsNs) === wholeNs) {
    const sizes = partsNs.map(Math.abs);
    const largest = sizes.indexOf(Math.max(...sizes));
    parts[largest] = (parts[largest] ?? 0) + whole - total(parts);
  }
  const say = (steps: number, ns: number): string => {
    if (steps < 0) return `−${say(-steps, -ns)}`;
    if (ns !== 0 && steps === 0) return `< ${(step / unit).toFixed(digits)} ${name}`;
    if (unit === NS.s && digits === 0) return clocklike(steps);
    return `${((steps * step) / unit).toFixed(digits)} ${name}`;
  };
  return { whole: say(whole, wholeNs), parts: parts.map((one, at) => say(one, partsNs[at] ?? 0)) };
}

/** Give the unit, and the digits after the point, in which `duration` tells this much. */
function fineness(ns: number): [number, string, number] {
  if (ns >= 99.95 * NS.s || ns === 0) return [NS.s, "s", 0];
  if (ns >= 999.5 * NS.ms) return [NS.s, "s", ns < 9.995 * NS.s ? 2 : 1];
  if (ns >= 999.5 * NS.us) return [NS.ms, "ms", ns < 10 * NS.ms ? 1 : 0];
  if (ns >= NS.us) return [NS.us, "µs", ns < 10 * NS.us ? 1 : 0];
  return [1, "ns", 0];
}

function clocklike(all: number): string {
  const [hours, minutes, seconds] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  if (hours > 0) return `${hours} h ${two(minutes)} m ${two(seconds)} s`;
  return minutes > 0 ? `${minutes} m ${two(seconds)} s` : `${seconds} s`;
}

/** Write a whole number with thin groups: 1,204. */
export function grouped(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** Write a count shortly: 999, 1.2 k, 12.4 M. */
export function count(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (Math.abs(value) < 10_000)
    return Number.isInteger(value) ? grouped(value) : significant(value);
  if (Math.abs(value) < 999_500) return `${significant(value / 1e3)} k`;
  if (Math.abs(value) < 999_500_000) return `${significant(value / 1e6)} M`;
  return `${significant(value / 1e9)} G`;
}

/** Write how much comes in some time: 1,380, 36.9, 0.53. */
export function rate(value: number): string {
  return count(Math.abs(value) >= 100 ? Math.round(value) : value);
}

/** Write any number with up to three significant digits after the point. */
export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  if (value < 0) return `−${number(-value)}`;
  const size = Math.abs(value);
  if (size >= 10_000) return count(value);
  if (size >= 100) return whole(value, 1);
  return size >= 0.001 ? whole(value, 3) : value.toExponential(1);
}

/** Write a reward: three digits, so that they stand below each other, and none if it is whole. */
export function reward(value: number | null | undefined): string {
  const isShort = value === null || value === undefined || Number.isInteger(value);
  return isShort || Math.abs(value) >= 100
    ? number(value)
    : `${value < 0 ? "−" : ""}${Math.abs(value).toFixed(3)}`;
}

/** Write a share of one in percent. */
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || Number.isNaN(share)) return "–";
  const value = share * 100;
  if (value !== 0 && Math.abs(value) < 0.1) return value < 0 ? "> −0.1 %" : "< 0.1 %";
  return `${Math.abs(value) < 9.95 && value !== 0 ? value.toFixed(1) : value.toFixed(0)} %`;
}

/** Write a change against something, always with its sign. */
export function change(share: number | null | undefined): string {
  if (share === null || share === undefined) return "–";
  if (Math.abs(share) < 0.001) return "±0 %";
  return `${share < 0 ? "−" : "+"}${percent(Math.abs(share))}`;
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value < 1000) return `${value.toFixed(0)} B`;
  for (const [unit, size] of [
    ["KB", 1e3],
    ["MB", 1e6],
    ["GB", 1e9],
  ] as const) {
    if (value < size * 999.5) return `${significant(value / size)} ${unit}`;
  }
  return `${significant(value / 1e12)} TB`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

/** Write the time of day of a time in nanoseconds since 1970, in the reader's zone. */
export function clock(ns: number, withMillis = false): string {
  const date = new Date(ns / 1e6);
  const text = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return withMillis ? `${text}.${String(date.getMilliseconds()).padStart(3, "0")}` : text;
}

/** Write date, time and zone, for hovering. */
export function moment(ns: number): string {
  const date = new Date(ns / 1e6);
  const zone = -date.getTimezoneOffset();
  const sign = zone < 0 ? "−" : "+";
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const hours = two(Math.floor(Math.abs(zone) / 60));
  return `${day} ${clock(ns, true)} UTC${sign}${hours}:${two(Math.abs(zone) % 60)}`;
}

/** Write a step beside an axis; they are whole, and between them it says nothing. */
export function wholeStep(x: number): string {
  return Number.isInteger(x) ? String(x) : "";
}

/** Write how long ago something was. */
export function ago(ns: number, nowNs: number): string {
  return `${duration(Math.max(nowNs - ns, 0))} ago`;
}

/** Write a count with its noun: 1 session, 37 sessions. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${grouped(value)} ${value === 1 ? one : many}`;
}

const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Make recorded text harmless to read: control and direction marks show as their code. */
export function visible(text: string): string {
  return text.replace(CONTROL, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
