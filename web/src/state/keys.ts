/** Keys: pages say which they know, one listener hears them, one list shows them. */
import { signal } from "./signals";
import { useEffect } from "preact/hooks";
import { remembered } from "./remembered";

export interface Key {
  /** As `event.key` has it; `Ctrl+K` and `Shift+Space` with their modifier; `g n` one after another. */
  key: string;
  label: string;
  run: () => void;
}

/** All that are in force, the newest last. */
export const knownKeys = signal<readonly Key[]>([]);
export const areKeysOn = remembered<"on" | "off">("keys", "on", ["on", "off"]);

const CHORD_MS = 1200;
let pending = "";
let pendingSince = 0;

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches("input:not([type=checkbox]), textarea, select"))
  );
}

function nameOf(event: KeyboardEvent): string {
  const key =
    event.key === " " ? "Space" : event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (event.ctrlKey || event.metaKey) return `Ctrl+${key.toUpperCase()}`;
  const isNamed = key.length > 1;
  return event.shiftKey && isNamed ? `Shift+${key}` : key;
}

function find(name: string): Key | undefined {
  return [...knownKeys.peek()]
    .reverse()
    .find((one) => one.key.toLowerCase() === name.toLowerCase());
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey) return;
  // A dialog has the keyboard to itself, and Escape to close it.
  if (document.querySelector("dialog[open]")) return;
  const name = nameOf(event);
  const isCommand = name.startsWith("Ctrl+");
  if (!isCommand && (isTyping(event.target) || areKeysOn.peek() === "off")) return;
  // A focused button or link keeps the keys that press it.
  const onControl =
    event.target instanceof HTMLElement && event.target.closest("button, a, summary, input");
  if (onControl && (name === "Enter" || name === "Space")) return;
  const isChord = performance.now() - pendingSince < CHORD_MS && pending !== "";
  const match = (isChord ? find(`${pending} ${name}`) : undefined) ?? find(name);
  pending =
    !isChord && !match && knownKeys.peek().some((one) => one.key.startsWith(`${name} `))
      ? name
      : "";
  pendingSince = performance.now();
  if (!match) return;
  event.preventDefault();
  match.run();
}

export function startKeys(): void {
  window.addEventListener("keydown", onKey);
}

/** Have these keys in force while the component is shown. */
export function useKeys(keys: readonly Key[], inputs: readonly unknown[] = []): void {
  useEffect(() => {
    knownKeys.value = [...knownKeys.peek(), ...keys];
    return () => {
      knownKeys.value = knownKeys.peek().filter((one) => !keys.includes(one));
    };
  }, [...inputs]);
}
