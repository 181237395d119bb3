/** Who waits, as parts of a bar: the trainer's time, and the time of slots. */
import type { TrainerSplit } from "../model/answers";
import { visible } from "../model/format";
import { link } from "../state/route";
import type { Share } from "./splitbar";

/** How each cause of idle slots is named, drawn and explained. */
const CAUSES: Readonly<Record<string, Omit<Share, "value">>> = {
  down: { label: "down", colour: "--bad", hint: "A process or replica was silent" },
  paused: {
    label: "paused",
    colour: "--role-sync",
    texture: "dotted",
    hint: "Paused, or taking new weights",
  },
  buffer_full: {
    label: "buffer full",
    colour: "--role-reward",
    hint: "The consumer was slower than the rollouts",
  },
  tail: {
    label: "tail",
    colour: "--name-2",
    texture: "hatched",
    hint: "No session of the step was left to start",
  },
  no_input: {
    label: "no input",
    colour: "--role-waiting",
    texture: "hatched",
    hint: "The queue was empty, though more was to come",
  },
  unknown: {
    label: "unknown",
    colour: "--role-other",
    texture: "hatched",
    hint: "Nothing recorded says why",
  },
};

export function trainerShares(trainer: TrainerSplit): Share[] {
  return [
    { label: "train", value: trainer.train_ns, colour: "--role-train" },
    { label: "sync", value: trainer.sync_ns, colour: "--role-sync", texture: "dotted" },
    {
      label: "waiting: filling",
      value: trainer.filling_ns,
      colour: "--role-waiting",
      texture: "hatched",
      hint: "Before 95 % of the needed sessions had come",
    },
    {
      label: "waiting: stragglers",
      value: trainer.stragglers_ns,
      colour: "--name-2",
      texture: "hatched",
      hint: "For the rest of them",
    },
    { label: "other", value: trainer.other_ns, colour: "--role-other" },
  ];
}

export function idleShare(cause: string, value: number): Share {
  const known = CAUSES[cause];
  if (known) return { ...known, value };
  const gate = visible(cause.replace(/^gate:/, ""));
  return { label: `gate: ${gate}`, value, colour: "--name-0", hint: "Held back by a gate" };
}

export function slotShares(
  split: { busy_ns: number; idle_ns: Record<string, number> },
  step: number,
): Share[] {
  const busy: Share = {
    label: "busy",
    value: split.busy_ns,
    colour: "--accent",
    href: link("sessions", "", { f: `step:${step}` }),
  };
  return [busy, ...Object.entries(split.idle_ns).map(([cause, ns]) => idleShare(cause, ns))];
}
