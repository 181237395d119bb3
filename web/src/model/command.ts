/** The command line that gives the same answer as a page. */
import type { Route } from "./route";

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}

/** Give the `rollscope` line for what is shown; null for pages that have none. */
export function commandFor({ run, page, arg, params }: Route): string | null {
  if (!run) return null;
  const name = quoted(run);
  switch (page) {
    case "now":
      return `rollscope stuck ${name}`;
    case "":
    case "steps":
      return `rollscope steps ${name}`;
    case "step":
      return `rollscope steps ${name} --step ${quoted(arg)}`;
    case "sessions":
      return `rollscope sessions ${name}${params["f"] ? ` --filter ${quoted(params["f"])}` : ""}`;
    case "session":
      return `rollscope show ${name} ${quoted(arg)}`;
    case "compare":
      return params["b"] ? `rollscope compare ${name} ${quoted(params["b"])}` : null;
    case "health":
      return `rollscope doctor ${name}`;
    default:
      return null;
  }
}
