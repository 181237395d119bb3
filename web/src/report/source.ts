/** A report as a source: everything it can answer lies in the page itself. */
import type { Answers, SessionLine } from "../model/answers";
import { parseFilter } from "../model/filter";
import { matchesLine, unknownFields } from "../model/matching";
import {
  type AnswerName,
  type Params,
  query,
  type RunList,
  type Source,
  SourceError,
} from "../model/source";
import { unnest } from "./nested";
import { unpack } from "./unpack";

/** The element that holds the index; the other blocks have its name in front of theirs. */
export const REPORT_ID = "rollscope-report";

interface Index {
  run: string;
  list: RunList;
  has_payloads: boolean;
  /** Keys of the answers of each block. */
  answers: Record<string, string[]>;
  defaults: Record<string, Record<string, string>>;
  frames: Record<string, string>;
  tiles: { by: string; block: string; t0: number; t1: number }[];
}

const ADVICE = "Open the run itself with `rollscope view`.";
const SORTED = {
  start: ({ row }: SessionLine) => row.start_ns,
  end: ({ row, ran_ns }: SessionLine) => row.start_ns + ran_ns,
  ran: ({ ran_ns }: SessionLine) => ran_ns,
  waited: ({ row }: SessionLine) => row.waited_ns,
  reward: ({ row }: SessionLine) => row.reward,
  tokens: ({ row }: SessionLine) => row.tokens_out,
};
type Key = keyof typeof SORTED;

function block(name: string): Response {
  const text = atob(document.getElementById(`${REPORT_ID}${name}`)!.textContent);
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  const unzipped = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unzipped);
}

function missing(what: string, advice = ADVICE, status = 404): SourceError {
  return new SourceError(`${what} not in this report.`, advice, status);
}

export class ReportSource implements Source {
  readonly isLive = false;
  readonly index = block("").json() as Promise<Index>;
  private readonly blocks: Record<string, Promise<unknown[]>> = {};
  private listed: Promise<SessionLine[]> | undefined;

  async runs(): Promise<RunList> {
    return (await this.index).list;
  }

  async answer<N extends AnswerName>(run: string, name: N, params: Params): Promise<Answers[N]> {
    const index = await this.index;
    if (run !== index.run) throw missing(`The run ${run} is`);
    const stored = await this.stored(name, params);
    if (stored) return stored;
    const made = await this.made(name, params);
    if (made) return made as Answers[N];
    throw name === "payloads" && !index.has_payloads
      ? missing("What was said is", "Make it again with --payloads.")
      : missing(params["session"] ? "This session is" : "That is");
  }

  private async stored<N extends AnswerName>(asked: N, params: Params): Promise<Answers[N] | null> {
    const { answers, defaults } = await this.index;
    const told = Object.entries(params).filter(
      ([key, value]) => String(value) !== defaults[asked]?.[key],
    );
    const key = asked + query(Object.fromEntries(told));
    const [name, keys] = Object.entries(answers).find((one) => one[1].includes(key)) ?? [];
    return keys ? (this.unpacked(name!, keys.indexOf(key)) as Promise<Answers[N]>) : null;
  }

  ask<T>(): Promise<T> {
    return Promise.reject(missing("That is"));
  }

  async binary(_run: string, what: string, params: Params): Promise<ArrayBuffer> {
    const { frames, tiles } = await this.index;
    const by = String(params["by"]);
    const own = tiles.filter((tile) => tile.by === by);
    // The finest of those that show all of it; they come from coarse to fine.
    const fit = own.findLast(
      ({ t0, t1 }) => t0 <= Number(params["t0"]) && t1 >= Number(params["t1"]),
    );
    if (what === "tile" && own[0]) return block((fit ?? own[0]).block).arrayBuffer();
    if (what === "frame" && frames[by]) return unnest(await block(frames[by]).arrayBuffer());
    throw missing(`The timeline by ${by} is`, ADVICE, own[0] ? 413 : 404);
  }

  exportUrl(): null {
    return null;
  }

  private async unpacked(name: string, place: number): Promise<unknown> {
    this.blocks[name] ??= block(name).json() as Promise<unknown[]>;
    const packed = await this.blocks[name];
    // Only tables of sessions refer to their list, which takes a moment to read.
    const refers = /\[[78],/.test(JSON.stringify(packed[place]));
    const lines = refers ? await this.lines() : [];
    return unpack(packed[place], (number, field) => {
      const line = lines[number]!;
      return field in line ? line[field as "ran_ns"] : line.row[field as "start_ns"];
    });
  }

  private lines(): Promise<SessionLine[]> {
    this.listed ??= (block("-sessions").json() as Promise<unknown>).then((packed) => {
      const lines = unpack(packed, () => null) as SessionLine[];
      for (const { row, ran_ns } of lines) {
        row.end_ns = row.status === "open" ? null : row.start_ns + ran_ns;
      }
      return lines;
    });
    return this.listed;
  }

  /** The sessions that are asked for, of how many; counted and drawn by those who ask. */
  private async found(params: Params): Promise<[SessionLine[], number]> {
    const parsed = parseFilter(String(params["filter"] ?? ""));
    if ("error" in parsed) throw new SourceError(parsed.error.message, "Correct the filter.", 400);
    const [unknown] = unknownFields(parsed.filter);
    if (unknown) throw missing(`What ${unknown} needs is`);
    const overview = await this.stored("overview", {});
    const by = new Map(overview!.processes.map((one) => [one.process, one]));
    const lines = await this.lines();
    const { ended_from_ns: from = 0, ended_to_ns: to = Infinity } = params;
    const kept = lines.filter((line) => {
      const end = SORTED.end(line);
      const isThen = Number(from) <= end && end < Number(to);
      return isThen && matchesLine(parsed.filter, line, by.get(line.row.process));
    });
    return [kept, lines.length];
  }

  /** What is made here of the list of sessions, because it depends on a filter. */
  private made(name: AnswerName, params: Params): Promise<Answers[AnswerName]> | null {
    if ((params["scope"] ?? "all") !== "all") return null;
    if (name === "sessions") return this.sessions(params);
    if (name === "facets") return this.facets(params);
    return name === "scatter" ? this.scatter(params) : null;
  }

  private async sessions(params: Params): Promise<Answers["sessions"]> {
    const [found, of] = await this.found(params);
    sortBy(found, String(params["sort"] ?? "-start"));
    const offset = Number(params["offset"] ?? 0);
    const sessions = found.slice(offset, offset + Number(params["limit"] ?? 15));
    return { sessions, matched: found.length, of };
  }

  /** Counts again how often the values that the report knows occur. */
  private async facets(params: Params): Promise<Answers["facets"]> {
    const all = (await this.stored("facets", {}))!;
    const [found] = await this.found(params);
    const facets = all.facets.map((facet) => {
      const counts = new Map<string | null, number>();
      for (const { row, phases } of found) {
        const own = row[facet.field as "host"] as string | number | null;
        const values =
          facet.field === "phase" ? Object.keys(phases) : [own === null ? own : `${own}`];
        for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
      }
      const values = facet.values.map((one) => ({ ...one, count: counts.get(one.value) ?? 0 }));
      return { ...facet, values: values.filter((one) => one.count > 0) };
    });
    return { ...all, matched: found.length, facets };
  }

  /** Leaves out points; percentiles are of all, so they go too. */
  private async scatter(params: Params): Promise<Answers["scatter"]> {
    const all = (await this.stored("scatter", {}))!;
    const ids = new Set((await this.found(params))[0].map(({ row }) => row.span_id));
    const kept = all.points.sessions.map((id) => ids.has(id));
    const points = Object.entries(all.points).map(([key, column]) => [
      key,
      Array.isArray(column) ? column.filter((_, at) => kept[at]) : ids.size,
    ]);
    return { ...all, points: Object.fromEntries(points) as typeof all.points, lines: [] };
  }
}

/** Sort as the run would: what is missing last, equals by their ids. */
function sortBy(lines: SessionLine[], sort: string): void {
  const value = SORTED[sort.replace("-", "") as Key];
  const sign = sort.startsWith("-") ? -1 : 1;
  lines.sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return sign * (a - b || (one.row.span_id < other.row.span_id ? -1 : 1));
  });
}
