/** The one source of this page, chosen at the start. */
import { ServerSource, type Source } from "../model/source";

let chosen: Source = new ServerSource();

export function source(): Source {
  return chosen;
}

export function useSource(given: Source): void {
  chosen = given;
}
