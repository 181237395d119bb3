/** Colours of roles and names, as the style sheet has them. */

export const ROLES = [
  "generate",
  "tool",
  "env",
  "reward",
  "train",
  "waiting",
  "sync",
  "other",
] as const;
export type Role = (typeof ROLES)[number];

export const OTHER_NAMES = 4;

/** Pick one of the spare colours for a name without a role, always the same one. */
export function spareOf(name: string): number {
  let hash = 2166136261;
  for (let i = 0; i < name.length; i++) {
    hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  }
  return (hash >>> 0) % OTHER_NAMES;
}

export function isRole(name: string): name is Role {
  return (ROLES as readonly string[]).includes(name);
}

/** The custom property that colours a phase of this name and role. */
export function colourVariable(name: string, role: string | null | undefined): string {
  if (role && isRole(role) && role !== "other") return `--role-${role}`;
  if (name === "other") return "--role-other";
  return `--name-${spareOf(name)}`;
}

/** The custom property that colours a line among several. */
export function lineColour(index: number): string {
  return index === 0 ? "--accent" : `--name-${(index - 1) % OTHER_NAMES}`;
}

/** Read a colour of the current theme, for canvases. */
export function readColour(variable: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}

/** #rrggbb as three bytes. */
export function channels(colour: string): [number, number, number] {
  const value = parseInt(colour.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/** Black or white, whichever reads better on a colour. */
export function inkOn(colour: string): "#000000" | "#ffffff" {
  return luminance(colour) > 0.179 ? "#000000" : "#ffffff";
}

export function luminance(colour: string): number {
  const [r, g, b] = channels(colour).map((byte) => {
    const value = byte / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(one: string, other: string): number {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
  return (high + 0.05) / (low + 0.05);
}
