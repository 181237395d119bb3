/** Answers for panels: asked once however many show them, kept while the next is on its way. */
import { type Signal, signal } from "./signals";
import { useEffect } from "preact/hooks";
import type { Answers } from "../model/answers";
import { type AnswerName, type Params, SourceError, query } from "../model/source";
import { pulse } from "./live";
import { runName } from "./route";
import { source } from "./source";

export interface Asked<T> {
  data: T | null;
  error: SourceError | null;
  /** Whether what is shown is being replaced. */
  isLoading: boolean;
}

interface Entry {
  state: Signal<Asked<unknown>>;
  readers: number;
  askedAt: number;
  abort: AbortController | null;
  ask: (signal: AbortSignal) => Promise<unknown>;
}

const entries = new Map<string, Entry>();
const KEPT = 60;

function start(entry: Entry): void {
  entry.abort?.abort();
  const abort = new AbortController();
  entry.abort = abort;
  entry.askedAt = pulse.peek();
  entry.state.value = { ...entry.state.peek(), isLoading: true };
  entry.ask(abort.signal).then(
    (data) => {
      if (!abort.signal.aborted) entry.state.value = { data, error: null, isLoading: false };
    },
    (error: unknown) => {
      if (abort.signal.aborted) return;
      const known = error instanceof SourceError ? error : new SourceError(String(error), "", 0);
      entry.state.value = { ...entry.state.peek(), error: known, isLoading: false };
    },
  );
}

function entryOf(key: string, ask: Entry["ask"]): Entry {
  let entry = entries.get(key);
  if (!entry) {
    entry = {
      state: signal<Asked<unknown>>({ data: null, error: null, isLoading: true }),
      readers: 0,
      askedAt: -1,
      abort: null,
      ask,
    };
    entries.set(key, entry);
    forgetOldest();
  }
  return entry;
}

function forgetOldest(): void {
  if (entries.size <= KEPT) return;
  for (const [key, entry] of entries) {
    if (entry.readers === 0) {
      entries.delete(key);
      if (entries.size <= KEPT) return;
    }
  }
}

function useEntry(key: string, ask: Entry["ask"], isFollowing: boolean): Asked<unknown> {
  const entry = entryOf(key, ask);
  const beat = isFollowing ? pulse.value : 0;
  useEffect(() => {
    entry.readers += 1;
    return () => {
      entry.readers -= 1;
    };
  }, [entry]);
  useEffect(() => {
    // An answer that takes longer than a pulse is waited for, not asked for again.
    const isBusy = entry.abort !== null && entry.state.peek().isLoading;
    if (entry.askedAt === -1 || (entry.askedAt < beat && !isBusy)) start(entry);
  }, [entry, beat]);
  return entry.state.value;
}

/** Ask one question of the current run, again whenever there is something new.
 *
 * @param params what it is asked with
 * @param options.follow false: once is enough
 * @param options.run another run than the current one
 */
export function useAnswer<N extends AnswerName>(
  name: N,
  params: Params = {},
  options: { follow?: boolean; run?: string } = {},
): Asked<Answers[N]> {
  const run = options.run ?? runName.value;
  const key = `${run} ${name}${query(params)}`;
  const ask = (abort: AbortSignal): Promise<unknown> => source().answer(run, name, params, abort);
  return useEntry(key, ask, options.follow ?? true) as Asked<Answers[N]>;
}

/** Ask once for something beside the answers; a report has none of it. */
export function useResource<T>(what: string, params: Params = {}): Asked<T> {
  const run = runName.value;
  const ask = (abort: AbortSignal): Promise<T> => source().ask<T>(run, what, params, abort);
  return useEntry(`${run} /${what}${query(params)}`, ask, false) as Asked<T>;
}

/** Ask again now. */
export function askAgain(): void {
  for (const entry of entries.values()) if (entry.readers > 0) start(entry);
}
