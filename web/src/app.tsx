/** The shell: what is around every page, and which page is shown. */
import { useEffect } from "preact/hooks";
import { visible } from "./model/format";
import type { Page } from "./model/route";
import { useAnswer } from "./state/answer";
import { nextTheme } from "./state/theme";
import { isPaused, togglePaused } from "./state/live";
import { link, navigate, route } from "./state/route";
import { useKeys } from "./state/keys";
import { PAGE_VIEWS } from "./pages";
import { RunList } from "./pages/runs/runlist";
import { CommandDialog, openCommands } from "./shell/commands";
import { FilterBar, focusFilter } from "./shell/filterbar";
import { Head } from "./shell/head";
import { KeyDialog, openKeyList } from "./shell/keylist";
import { StateBar } from "./shell/statebar";
import { copyText, notice } from "./views/copy";
import { Failure, Skeleton } from "./views/panel";

const GO_TO: readonly [string, Page, string][] = [
  ["g n", "now", "Go to Now"],
  ["g s", "steps", "Go to Steps"],
  ["g t", "timeline", "Go to Timeline"],
  ["g e", "sessions", "Go to Sessions"],
  ["g c", "compare", "Go to Compare"],
  ["g h", "health", "Go to Health"],
];

export function App() {
  useKeys([
    ...GO_TO.map(([key, page, label]) => ({
      key,
      label,
      run: () => {
        if (route.peek().run) navigate(link(page));
      },
    })),
    { key: "?", label: "Show all keys", run: openKeyList },
    { key: "Ctrl+K", label: "Commands", run: openCommands },
    { key: "/", label: "Filter", run: focusFilter },
    { key: "Space", label: "Follow the run, or stand still", run: togglePaused },
    { key: "t", label: "Light, dark or system theme", run: nextTheme },
    {
      key: "y",
      label: "Copy the link to what is shown",
      run: () => void copyText(location.href),
    },
    { key: "Escape", label: "One level back", run: goUp },
  ]);
  return (
    <>
      <a class="skip" href="#main" onClick={skipToMain}>
        Skip to the page
      </a>
      {route.value.run ? <RunPages /> : <RunList />}
      <CommandDialog />
      <KeyDialog />
      <div class="notice" role="status" aria-live="polite">
        {notice.value}
      </div>
    </>
  );
}

function skipToMain(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/** From a session to the sessions, from a step to the steps, from a page to its first state. */
function goUp(): void {
  const { page, params } = route.peek();
  if (page === "step") navigate(link("steps"));
  else if (page === "session") navigate(link("sessions"));
  else if (Object.keys(params).length) navigate(link(page, route.peek().arg));
}

function RunPages() {
  const { page, run, arg } = route.value;
  const asked = useAnswer("overview");
  const shown = page || asked.data?.home;
  useEffect(() => {
    document.title = visible(`${run} · ${shown ?? ""} ${arg} · Rollscope`);
  }, [run, shown, arg]);
  const View = shown ? PAGE_VIEWS[shown as Page] : undefined;
  return (
    <>
      <Head overview={asked.data} page={shown as Page | undefined} />
      <StateBar overview={asked.data} />
      {(shown === "sessions" || shown === "timeline") && <FilterBar />}
      <main id="main" tabIndex={-1} class={isPaused.value ? "paused" : ""}>
        {asked.data && View ? (
          <View key={`${run}/${shown}/${arg}`} overview={asked.data} arg={arg} />
        ) : asked.error ? (
          <div class="page">
            <Failure title="run" error={asked.error} />
          </div>
        ) : (
          <Skeleton />
        )}
      </main>
    </>
  );
}
