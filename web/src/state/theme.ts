/** Light, dark, or as the system has it. */
import { computed, effect, signal } from "./signals";
import { remembered } from "./remembered";

export type Theme = "system" | "light" | "dark";
const ORDER: readonly Theme[] = ["system", "light", "dark"];

export const theme = remembered<Theme>("theme", "system", ORDER);

const systemQuery = matchMedia("(prefers-color-scheme: dark)");
const isSystemDark = signal(systemQuery.matches);
systemQuery.addEventListener("change", (event) => {
  isSystemDark.value = event.matches;
});

/** What is drawn; canvases read their colours anew when it changes. */
export const shownTheme = computed<"light" | "dark">(() =>
  theme.value === "system" ? (isSystemDark.value ? "dark" : "light") : theme.value,
);

effect(() => {
  document.documentElement.dataset["theme"] = shownTheme.value;
});

export function nextTheme(): void {
  theme.value = ORDER[(ORDER.indexOf(theme.value) + 1) % ORDER.length] ?? "system";
}
