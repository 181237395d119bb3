/** Small choices kept in this browser; where that is forbidden they last until the page closes. */
import { type Signal, effect, signal } from "./signals";

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function remembered<T extends string>(
  name: string,
  fallback: T,
  allowed?: readonly T[],
): Signal<T> {
  const key = `rollscope.${name}`;
  const found = read(key) as T | null;
  const isKnown = found !== null && (!allowed || allowed.includes(found));
  const value = signal<T>(isKnown ? found : fallback);
  effect(() => {
    const now = value.value;
    try {
      localStorage.setItem(key, now);
    } catch {
      // private windows and files: the choice lasts as long as the page
    }
  });
  return value;
}
