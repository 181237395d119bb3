/** How far the run has come: one event stream, its gaps mended by polling, and a pulse for panels.
 *
 * `pulse` counts up at most once a second while there is something new; panels ask again then.
 * `nowNs` is the server's clock, so that ages and open spans grow between answers.
 */
import { computed, effect, signal } from "./signals";
import { ServerSource, SourceError } from "../model/source";
import { route, runName } from "./route";
import { source } from "./source";

export type Link = "connecting" | "live" | "polling" | "lost" | "refused" | "file";

export interface Progress {
  run: string;
  seq: number;
  now_ns: number;
  last_ns: number;
  is_alive: boolean;
  changed?: string[];
}

const BEAT_MS = 1_000;
/** Without news panels still ask now and then: what is stuck gets worse by itself. */
const SLOW_BEAT_MS = 5_000;
const HIDDEN_MS = 30_000;
const FIRST_EVENT_MS = 5_000;
/** The server speaks every 15 s; a tunnel that hangs says nothing and closes nothing. */
const SILENT_MS = 40_000;
const POLL_MS = 2_000;
const LONGEST_RETRY_S = 15;
const PROBE_MS = 1_000;
const REFUSED_MS = 5_000;

export const linkState = signal<Link>("connecting");
const retryIn = signal(0);
/** What is said of a server that does not answer. */
export const lostWords = computed(() =>
  retryIn.value > 0
    ? `Lost the server, next try in ${retryIn.value} s`
    : "Lost the server, trying again",
);
export const progress = signal<Progress | null>(null);
export const isPaused = signal(false);
export const pulse = signal(0);
/** Seconds tick, for ages. */
export const second = signal(0);

const offsetNs = signal(0);

/** The server's time now, in nanoseconds. */
export function nowNs(): number {
  return Date.now() * 1e6 + offsetNs.peek();
}

/** Whether more may come. */
export const isAlive = computed(() => progress.value?.is_alive ?? false);

/** For how long no record has come, in seconds, while the run lives. */
export const quietS = computed(() => {
  void second.value;
  const at = progress.value;
  return at?.is_alive ? Math.max(0, (nowNs() - at.last_ns) / 1e9) : 0;
});

let stream: EventSource | null = null;
let poller: ReturnType<typeof setInterval> | undefined;
let beat: ReturnType<typeof setTimeout> | undefined;
let lastBeat = 0;
let failures = 0;
let retry: ReturnType<typeof setTimeout> | undefined;

function heard(given: Progress): void {
  const before = progress.peek();
  offsetNs.value = given.now_ns - Date.now() * 1e6;
  failures = 0;
  progress.value = given;
  const isNew =
    before?.run !== given.run || before.seq !== given.seq || before.is_alive !== given.is_alive;
  if (isNew && before !== null && !isPaused.peek()) schedulePulse();
}

function schedulePulse(): void {
  if (beat !== undefined) return;
  const wait = Math.max(0, lastBeat + BEAT_MS - performance.now());
  beat = setTimeout(() => {
    beat = undefined;
    lastBeat = performance.now();
    pulse.value += 1;
  }, wait);
}

async function pollOnce(run: string, server: ServerSource): Promise<void> {
  try {
    heard(await server.ask<Progress>(run, "progress", {}));
    linkState.value = "polling";
  } catch {
    lose(run);
  }
}

function disconnect(): void {
  stream?.close();
  stream = null;
  clearInterval(poller);
  clearInterval(retry);
  poller = undefined;
}

/** The stream broke: the server is gone, unless it answers at once: with how far the run has come,
 * and the stream is tried again, or that it does not have this run. */
function stumble(run: string, server: ServerSource): void {
  disconnect();
  let isDecided = false;
  const verdict = setTimeout(() => {
    isDecided = true;
    lose(run);
  }, PROBE_MS);
  const decide = (then: () => void): void => {
    if (isDecided || runName.peek() !== run) return;
    clearTimeout(verdict);
    then();
  };
  const tryAgain = (state: Link, ms: number): void => {
    linkState.value = state;
    retry = setTimeout(() => connect(run), ms);
  };
  server.ask<Progress>(run, "progress", {}).then(
    (given) =>
      decide(() => {
        heard(given);
        tryAgain("polling", PROBE_MS);
      }),
    (error: unknown) =>
      decide(() => {
        const isRefused =
          error instanceof SourceError && (error.status === 404 || error.status === 401);
        if (isRefused)
          tryAgain("refused", REFUSED_MS); // also what a server says that is about to stop
        else lose(run);
      }),
  );
}

function lose(run: string): void {
  disconnect();
  linkState.value = "lost";
  failures += 1;
  retryIn.value = Math.min(LONGEST_RETRY_S, 1 + failures * failures);
  retry = setInterval(() => {
    retryIn.value -= 1;
    if (retryIn.value <= 0) connect(run);
  }, 1000);
}

function connect(run: string): void {
  disconnect();
  const server = source();
  if (!(server instanceof ServerSource)) {
    linkState.value = "file";
    return;
  }
  const opened = new EventSource(server.eventsUrl(run));
  stream = opened;
  let silence = setTimeout(() => {
    // A proxy that keeps back what it should pass on: ask instead.
    if (stream !== opened) return;
    disconnect();
    void pollOnce(run, server);
    poller = setInterval(() => void pollOnce(run, server), POLL_MS);
  }, FIRST_EVENT_MS);
  const hear = (): void => {
    clearTimeout(silence);
    silence = setTimeout(() => {
      if (stream === opened) stumble(run, server);
    }, SILENT_MS);
  };
  opened.addEventListener("alive", hear);
  opened.addEventListener("seq", (event) => {
    hear();
    const wasLost = linkState.peek() !== "live";
    linkState.value = "live";
    heard(JSON.parse((event as MessageEvent<string>).data) as Progress);
    if (wasLost) schedulePulse();
  });
  opened.onerror = () => {
    clearTimeout(silence);
    if (stream === opened) stumble(run, server);
  };
}

let hiddenTimer: ReturnType<typeof setTimeout> | undefined;

/** An answer is behind the run: ask again as soon as there is a newer one. */
function askLater(seconds: number): void {
  setTimeout(() => {
    if (!isPaused.peek()) schedulePulse();
  }, seconds * 1000);
}

/** Follow the run of the address, for as long as somebody looks. */
export function startFollowing(): void {
  const server = source();
  if (server instanceof ServerSource) server.onStale = askLater;
  setInterval(() => {
    if (document.hidden) return;
    second.value += 1;
    const isDue = performance.now() - lastBeat > SLOW_BEAT_MS;
    if (isDue && isAlive.peek() && !isPaused.peek()) schedulePulse();
  }, 1000);
  effect(() => {
    const run = runName.value;
    progress.value = null;
    if (run) connect(run);
    else disconnect();
  });
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiddenTimer);
    if (document.hidden) {
      hiddenTimer = setTimeout(disconnect, HIDDEN_MS);
    } else if (!stream && !poller && route.peek().run) {
      connect(route.peek().run);
    }
  });
}

export function togglePaused(): void {
  isPaused.value = !isPaused.value;
  if (!isPaused.value) pulse.value += 1;
}
