/** Where the reader is: the address behind `#` as a signal, and ways to change it. */
import { computed, signal } from "./signals";
import { formatRoute, parseRoute, type Route } from "../model/route";

export const route = signal<Route>(parseRoute(location.hash));
export const runName = computed(() => route.value.run);

window.addEventListener("hashchange", () => {
  route.value = parseRoute(location.hash);
});

/** The address of a page of the current run; parameters that pages share are kept. */
export function link(
  page: Route["page"],
  arg: string | number = "",
  params: Record<string, string> = {},
): string {
  const { run } = route.value;
  return formatRoute({ run, page, arg: String(arg), params });
}

export function navigate(hash: string): void {
  location.hash = hash;
}

/** Change parameters of the current page; null removes one. */
export function setParams(
  changes: Readonly<Record<string, string | null>>,
  options: { replace?: boolean } = {},
): void {
  const { run, page, arg, params } = route.value;
  const next: Record<string, string> = { ...params };
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") Reflect.deleteProperty(next, key);
    else next[key] = value;
  }
  const hash = formatRoute({ run, page, arg, params: next });
  if (hash === location.hash) return;
  if (options.replace) {
    history.replaceState(null, "", hash);
    route.value = parseRoute(hash);
  } else {
    location.hash = hash;
  }
}

/** One parameter of the current address. */
export function param(name: string, fallback = ""): string {
  return route.value.params[name] ?? fallback;
}
