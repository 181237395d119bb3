/** The head of every page: where one is, where one can go, and how far to trust it. */
import type { Overview } from "../model/answers";
import { isImported } from "../model/origin";
import type { Page } from "../model/route";
import { isPaused, linkState, lostWords, togglePaused } from "../state/live";
import { useAnswer } from "../state/answer";
import { link, route } from "../state/route";
import { nextTheme, theme } from "../state/theme";
import { source } from "../state/source";
import { Badge, Text } from "../views/bits";
import { sessionName } from "../views/sessionlink";
import { openCommands } from "./commands";
import { openKeyList } from "./keylist";

const MENU: readonly [Page, string][] = [
  ["now", "Now"],
  ["steps", "Steps"],
  ["timeline", "Timeline"],
  ["sessions", "Sessions"],
  ["compare", "Compare"],
  ["health", "Health"],
];

/** The page in the menu that a page belongs to. */
const PARENT: Partial<Record<Page, Page>> = { step: "steps", session: "sessions" };

export function Head({ overview, page }: { overview: Overview | null; page: Page | undefined }) {
  return (
    <header class="head">
      <Breadcrumb page={page} />
      <nav class="menu" aria-label="Pages">
        {MENU.filter(([one]) => one !== "compare" || source().isLive).map(([one, title]) => (
          <a
            key={one}
            href={link(one)}
            aria-current={page && (PARENT[page] ?? page) === one ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <div class="spread row head-end">
        {overview && <Completeness overview={overview} />}
        <div class="row head-keys">
          <LivePill overview={overview} />
          <button
            class="plain"
            onClick={openCommands}
            aria-label="Commands (Ctrl+K)"
            title="Commands (Ctrl+K)"
          >
            ⌘
          </button>
          <button class="plain" onClick={openKeyList} aria-label="Keys (?)" title="Keys (?)">
            ?
          </button>
          <button
            class="plain"
            onClick={nextTheme}
            aria-label={`Theme: ${theme.value}`}
            title={`Theme: ${theme.value}`}
          >
            {{ system: "◐", light: "☀", dark: "☾" }[theme.value]}
          </button>
        </div>
      </div>
    </header>
  );
}

function Breadcrumb({ page }: { page: Page | undefined }) {
  const { run, arg } = route.value;
  return (
    <nav class="crumbs" aria-label="You are here">
      {source().isLive && (
        <a href="#/" title="All runs" aria-label="All runs">
          ▤
        </a>
      )}
      <a href={link("")} class="crumb-run">
        <Text text={run} max={40} />
      </a>
      {page === "step" && <a href={link("step", arg)}>step {arg}</a>}
      {page === "session" && <SessionCrumb id={arg} />}
    </nav>
  );
}

/** The session by the name that people know; the page asks the same, so it costs nothing. */
function SessionCrumb({ id }: { id: string }) {
  const known = useAnswer("session", { session: id }).data?.session;
  return (
    <a href={link("session", id)} title={id}>
      <Text text={known ? sessionName(known, id) : id} max={known ? 32 : 16} />
    </a>
  );
}

function Completeness({ overview }: { overview: Overview }) {
  const { badges } = overview.completeness;
  if (badges.length === 0) return null;
  return (
    <a
      href={link("health")}
      title={badges.map((one) => one.sentence).join("\n")}
      class="completeness"
    >
      <Badge tone="warn">
        {badges.length === 1
          ? badges[0]!.sentence
          : `${badges.length} things to know about this data`}
      </Badge>
    </a>
  );
}

function LivePill({ overview }: { overview: Overview | null }) {
  const state = linkState.value;
  if (state === "file") return <Badge>report</Badge>;
  if (state === "refused") return null;
  if (state === "lost") return <Badge tone="bad">{lostWords.value}</Badge>;
  if (overview && !overview.is_alive) {
    return (
      <Badge tone={overview.is_crashed ? "bad" : "plain"}>
        {overview.is_crashed ? "crashed" : isImported(overview) ? "imported" : "ended"}
      </Badge>
    );
  }
  if (state === "connecting") return <Badge>connecting</Badge>;
  return (
    <button
      class={`pill ${isPaused.value ? "" : "live"}`}
      onClick={togglePaused}
      aria-pressed={!isPaused.value}
    >
      <i aria-hidden="true" /> {isPaused.value ? "Standing still" : "Live"}
    </button>
  );
}
