/** Where the page gets its data: a server, or the report it stands in. */
import type { Answers, Parameters } from "./answers";

export type AnswerName = keyof Answers;
export type Params = Readonly<Record<string, string | number | boolean | null | undefined>>;
export type ParametersOf<N extends AnswerName> = N extends keyof Parameters
  ? Parameters[N]
  : Params;

export interface RunEntry {
  name: string;
  is_alive: boolean;
  created_ns: number;
  last_ns: number;
  spans: number;
  open_sessions: number;
  steps: number;
  size_bytes: number;
  is_imported?: boolean;
  is_crashed?: boolean;
  problem?: string | null;
}

export interface RunList {
  runs: RunEntry[];
  now_ns: number;
  dir: string;
}

export interface TileRequest {
  by: string;
  t0: number;
  t1: number;
  width: number;
  first?: number;
  lanes?: number;
  filter?: string;
}

/** What went wrong, and what to do about it. */
export class SourceError extends Error {
  constructor(
    message: string,
    readonly advice: string,
    readonly status: number,
  ) {
    super(message);
  }
}

export interface Source {
  /** Whether there is a server behind it, which may learn more. */
  readonly isLive: boolean;
  runs(): Promise<RunList>;
  answer<N extends AnswerName>(
    run: string,
    name: N,
    params: Params,
    signal?: AbortSignal,
  ): Promise<Answers[N]>;
  /** Any further resource of a run, as JSON: a span, an area, a fresh stack. */
  ask<T>(run: string, what: string, params: Params, signal?: AbortSignal): Promise<T>;
  /** A view frame: `tile`, `frame` or `delta`. */
  binary(run: string, what: string, params: Params, signal?: AbortSignal): Promise<ArrayBuffer>;
  /** Where a file of the run can be fetched from; null if there is no such place. */
  exportUrl(run: string, params: Params): string | null;
}

export function query(params: Params): string {
  const given = Object.entries(params).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  given.sort(([a], [b]) => (a < b ? -1 : 1));
  const text = given.map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`).join("&");
  return text ? `?${text}` : "";
}

/** Asks the server that the page came from, by relative addresses only. */
export class ServerSource implements Source {
  readonly isLive = true;
  /** Told when an answer was kept back from the run's latest, and in how many seconds it is made. */
  onStale: ((seconds: number) => void) | null = null;

  constructor(private readonly base = "api/v1/") {}

  async runs(): Promise<RunList> {
    return (await this.get("runs")).json() as Promise<RunList>;
  }

  async answer<N extends AnswerName>(
    run: string,
    name: N,
    params: Params,
    signal?: AbortSignal,
  ): Promise<Answers[N]> {
    return this.ask(run, `answer/${name}`, params, signal);
  }

  async ask<T>(run: string, what: string, params: Params, signal?: AbortSignal): Promise<T> {
    const response = await this.get(this.path(run, what, params), signal);
    return response.json() as Promise<T>;
  }

  async binary(
    run: string,
    what: string,
    params: Params,
    signal?: AbortSignal,
  ): Promise<ArrayBuffer> {
    return (await this.get(this.path(run, what, params), signal)).arrayBuffer();
  }

  async post<T>(run: string, what: string, params: Params): Promise<T> {
    const response = await this.get(this.path(run, what, params), undefined, "POST");
    return response.json() as Promise<T>;
  }

  exportUrl(run: string, params: Params): string {
    return this.base + this.path(run, "export", params);
  }

  eventsUrl(run: string): string {
    return `${this.base}events${query({ run })}`;
  }

  private path(run: string, what: string, params: Params): string {
    return `run/${encodeURIComponent(run)}/${what}${query(params)}`;
  }

  private async get(path: string, signal?: AbortSignal, method = "GET"): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(this.base + path, { method, signal: signal ?? null });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new SourceError("The server does not answer.", "It is tried again by itself.", 0);
    }
    if (!response.ok) throw await toError(response);
    const seconds = Number(response.headers.get("Rollscope-Stale") ?? 0);
    if (seconds > 0) this.onStale?.(seconds);
    return response;
  }
}

async function toError(response: Response): Promise<SourceError> {
  if (response.status === 401) {
    return new SourceError(
      "This address has no valid token.",
      "Open the whole address that `rollscope view` printed.",
      401,
    );
  }
  try {
    const body = (await response.json()) as { error?: string; advice?: string };
    return new SourceError(body.error ?? response.statusText, body.advice ?? "", response.status);
  } catch {
    return new SourceError(`The server answered ${response.status}.`, "", response.status);
  }
}
