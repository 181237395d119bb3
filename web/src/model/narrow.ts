/** Making a filter narrower or wider by one condition, as its text. */
import { lengthTerm } from "./term";

function joined(...parts: readonly string[]): string {
  return parts
    .map((one) => one.trim())
    .filter(Boolean)
    .join(" ");
}

/** Say whether a filter has a condition, written as it is. */
export function hasTerm(filter: string, term: string): boolean {
  return ` ${filter} `.includes(` ${term} `);
}

/** Add a condition; take it away if it is there. */
export function toggleTerm(filter: string, term: string): string {
  if (!hasTerm(filter, term)) return joined(filter, term);
  return joined(...` ${filter} `.split(` ${term} `));
}

/** Let through what ran this long, instead of any other bounds on that. */
export function withLengths(filter: string, low: number, high: number): string {
  const rest = filter.replace(/(^|\s)ran[<>]=?\S+/g, " ").replace(/\s+/g, " ");
  return joined(rest, lengthTerm("ran", ">=", low), lengthTerm("ran", "<", high));
}

/** What the word before the caret could become, each as the whole text. */
export function completions(text: string, terms: readonly string[]): string[] {
  const start = text.search(/\S*$/);
  const word = text.slice(start);
  const sign = word.startsWith("-") ? "-" : "";
  const begun = word.slice(sign.length).toLowerCase();
  const before = text.slice(0, start) + sign;
  return terms
    .filter((one) => one.toLowerCase().startsWith(begun) && one.toLowerCase() !== begun)
    .map((one) => before + one);
}
