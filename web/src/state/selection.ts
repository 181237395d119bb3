/** What the reader has picked; it survives a change of page. */
import { signal } from "./signals";

/** Sessions marked for comparison, by id. */
export const marked = signal<readonly string[]>([]);

export function toggleMarked(id: string): void {
  const now = marked.peek();
  marked.value = now.includes(id) ? now.filter((one) => one !== id) : [...now, id];
}

/** The one time that all panels show with a line, in seconds since the run's start. */
export const asOf = signal<number | null>(null);
