/** The start of the page: what it reads from, then the shell. */
import { render } from "preact";
import { App } from "./app";
import type { Source } from "./model/source";
import { startKeys } from "./state/keys";
import { startFollowing } from "./state/live";
import { useSource } from "./state/source";

export function start(from: Source): void {
  const root = document.getElementById("app");
  if (!root) return;
  useSource(from);
  startFollowing();
  startKeys();
  root.replaceChildren();
  render(<App />, root);
}
