/** A box on the plane of durations as it stands in the address. */
import type { Region } from "../../views/plane";

/** In whole nanoseconds. */
export function formatRegion(region: Region): string {
  return [region.from, region.to, region.low, region.high].map((ns) => Math.round(ns)).join("-");
}

export function parseRegion(text: string): Region | null {
  const match = /^(\d+)-(\d+)-(\d+)-(\d+)$/.exec(text);
  if (!match) return null;
  const [from, to, low, high] = match.slice(1).map(Number) as [number, number, number, number];
  return { from, to, low, high };
}
