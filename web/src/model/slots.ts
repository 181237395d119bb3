/**
 * Colour slots: which of the twelve colours of the timeline a name is drawn in.
 *
 * The first seven are roles (generate, tool, env, reward, train, waiting, sync); any other name
 * takes one of four more, always the same one; what only holds other spans (sessions, tasks, steps)
 * is grey, so that the work inside stands out.
 */

import type { FrameHeader } from "./frame";
import { OTHER_NAMES, spareOf } from "./palette";

const SLOT_ROLES = ["generate", "tool", "env", "reward", "train", "waiting", "sync"];
const CONTAINERS = new Set(["session", "task", "step"]);

export const FIRST_OTHER_SLOT = SLOT_ROLES.length;
export const CONTAINER_SLOT = FIRST_OTHER_SLOT + OTHER_NAMES;
export const SLOT_COUNT = CONTAINER_SLOT + 1;
export const WAITING_SLOT = 5;
export const SYNC_SLOT = 6;

/** The custom property that colours each slot. */
export const SLOT_VARIABLES: readonly string[] = [
  ...SLOT_ROLES.map((role) => `--role-${role}`),
  ...Array.from({ length: OTHER_NAMES }, (_, spare) => `--name-${spare}`),
  "--role-other",
];

/** Give the slot of each name of a frame. */
export function slotsOfNames(
  header: Pick<FrameHeader, "names" | "name_roles" | "roles">,
): Uint8Array {
  const slots = new Uint8Array(header.names.length);
  header.names.forEach((name, index) => {
    slots[index] = slotOf(name, header.roles[header.name_roles[index] ?? -1] ?? "other");
  });
  return slots;
}

/** Give the slot of one name with its role. */
export function slotOf(name: string, role: string): number {
  const slot = SLOT_ROLES.indexOf(role);
  if (slot >= 0) {
    return slot;
  }
  return CONTAINERS.has(name) ? CONTAINER_SLOT : FIRST_OTHER_SLOT + spareOf(name);
}
