/** Links: every state of every page is an address behind `#`, the same in server and report. */

export const PAGES = [
  "now",
  "steps",
  "step",
  "timeline",
  "sessions",
  "session",
  "compare",
  "health",
] as const;
export type Page = (typeof PAGES)[number];

export interface Route {
  /** The run, or "" for the list of runs. */
  run: string;
  /** "" is the run's home: Now while it lives, Steps once it has ended. */
  page: Page | "";
  /** The step or session a page is about. */
  arg: string;
  params: Readonly<Record<string, string>>;
}

/** A range of time within the run, in seconds since its start. */
export interface Range {
  from: number;
  to: number;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // somebody cut the link in the middle of a character
  }
}

export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#?\/?/, "");
  const question = text.indexOf("?");
  const path = question < 0 ? text : text.slice(0, question);
  const [run = "", page = "", ...rest] = path.split("/").map(decode);
  const params: Record<string, string> = {};
  if (question >= 0) {
    for (const [key, value] of new URLSearchParams(text.slice(question + 1))) params[key] = value;
  }
  const known = PAGES.find((one) => one === page) ?? "";
  return { run, page: known, arg: rest.join("/"), params };
}

export function formatRoute(route: Partial<Route> & { run: string }): string {
  const parts = [route.run, route.page ?? "", route.arg ?? ""].map(encodeURIComponent);
  while (parts.length > 1 && parts[parts.length - 1] === "") parts.pop();
  const given = Object.entries(route.params ?? {}).filter(([, value]) => value !== "");
  const query = given.map(([key, value]) => `${encodeURIComponent(key)}=${soft(value)}`).join("&");
  return `#/${parts.join("/")}${query ? `?${query}` : ""}`;
}

/** Encode a value, but leave what reads better in a link as it is. */
function soft(value: string): string {
  return encodeURIComponent(value).replace(/%(3A|2C|3E|3C|2F)/g, (code) =>
    decodeURIComponent(code),
  );
}

export function parseRange(text: string | undefined): Range | null {
  const match = /^(-?[\d.]+)-(-?[\d.]+)$/.exec(text ?? "");
  if (!match) return null;
  const from = Number(match[1]);
  const to = Number(match[2]);
  return Number.isFinite(from) && Number.isFinite(to) && to > from ? { from, to } : null;
}

export function formatRange(range: Range): string {
  return `${Number(range.from.toFixed(6))}-${Number(range.to.toFixed(6))}`;
}
