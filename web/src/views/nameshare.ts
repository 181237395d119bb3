/** Time under a name as part of a bar, drawn in the colour and texture of its role. */
import type { Overview } from "../model/answers";
import { visible } from "../model/format";
import { colourVariable } from "../model/palette";
import type { Share } from "./splitbar";

const TEXTURES: Readonly<Record<string, NonNullable<Share["texture"]>>> = {
  waiting: "hatched",
  sync: "dotted",
};

export function roleOf({ roles }: Overview, name: string): string | undefined {
  return roles[name] ?? (name === "sync" ? "sync" : undefined);
}

export function nameShare(overview: Overview, name: string, value: number): Share {
  const role = roleOf(overview, name);
  const texture = TEXTURES[role ?? ""];
  const share = { label: visible(name), value, colour: colourVariable(name, role) };
  return texture ? { ...share, texture } : share;
}
