/** Rows of the list: only those in sight are elements, only their hundreds are asked for. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Overview, SessionLine } from "../../model/answers";
import { useAnswer } from "../../state/answer";
import { link, navigate, setParams } from "../../state/route";
import { marked, toggleMarked } from "../../state/selection";
import { sessionName } from "../../views/sessionlink";
import { type Column, Head } from "../../views/table";
import { filledColumns, listColumns, SORTED } from "./columns";
import type { Within } from "./page";
import { Path } from "./path";

export const PAGE = 100;
/** Browsers draw no box higher than some ten million pixels. */
export const MOST_ROWS = 200_000;
const AROUND = 6;
/** As the style sheet has them: a row, a row as a card, and an unfolded path. */
const [ROW, CARD, PATH] = [30, 108, 92];

interface List {
  columns: readonly Column<SessionLine>[];
  overview: Overview;
  /** The row that the keys move from. */
  at: number;
  unfolded: Unfolded;
  onUnfold: (which: Unfolded) => void;
  onRows: (lines: readonly SessionLine[]) => void;
}
type Unfolded = { id: string; index: number } | null;

export function VirtualRows(props: {
  overview: Overview;
  params: Within;
  matched: number;
  follow: boolean;
  onHold: (isHeld: boolean) => void;
}) {
  const { overview, params, follow } = props;
  const box = useRef<HTMLDivElement>(null);
  const [[top, height, row], setView] = useState<[number, number, number]>([0, 600, ROW]);
  const [unfolded, setUnfolded] = useState<Unfolded>(null);
  const [at, setAt] = useState(0);
  const all = useMemo(() => listColumns(overview), [overview.roles]);
  // What has been filled once stays, so that no column goes while one reads on.
  const [filled, setFilled] = useState<ReadonlySet<string>>(new Set());
  const columns = all.filter(({ id }) => filled.has(id) || String(params["sort"]).endsWith(id));
  const onRows = (lines: readonly SessionLine[]): void => {
    const found = filledColumns(all, lines).filter((id) => !filled.has(id));
    if (found.length) setFilled((before) => new Set([...before, ...found]));
  };
  const look = (): void => {
    if (!box.current) return;
    const { scrollTop, clientHeight } = box.current;
    setView([scrollTop, clientHeight, innerWidth < 700 ? CARD : ROW]);
  };
  useEffect(() => {
    const observer = new ResizeObserver(look);
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  const total = Math.min(props.matched, MOST_ROWS);
  const last = Math.min(total, Math.ceil((top + height) / row) + AROUND);
  const first = Math.max(0, Math.min(Math.floor(top / row) - AROUND, last));
  const pages = [];
  for (let page = Math.floor(first / PAGE); page * PAGE < last; page++) pages.push(page);
  const open = unfolded?.index ?? NaN;
  const gap = (rows: number, isWithPath: boolean) => (
    <tbody class="gap" aria-hidden="true">
      <tr style={{ height: `${rows * row + (isWithPath ? PATH : 0)}px` }} />
    </tbody>
  );
  const onKey = (event: KeyboardEvent): void => {
    const by = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (!by || !(event.target instanceof HTMLTableRowElement)) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(total - 1, at + by));
    setAt(next);
    reveal(box.current!, next, row);
  };
  return (
    <div
      class="list-box"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label="List of sessions"
      onScroll={look}
      onKeyDown={onKey}
      onPointerEnter={() => props.onHold(true)}
      onPointerLeave={() => props.onHold(false)}
    >
      <table class="table list" aria-label="Sessions" aria-rowcount={total + 1}>
        <Heads columns={columns} sort={String(params["sort"])} />
        {gap(first, open < first)}
        {pages.map((page) => (
          <Hundred
            key={page}
            page={page}
            from={Math.max(first, page * PAGE)}
            to={Math.min(last, (page + 1) * PAGE)}
            params={params}
            follow={follow}
            list={{ columns, overview, at, unfolded, onUnfold: setUnfolded, onRows }}
          />
        ))}
        {gap(total - last, open >= last)}
      </table>
    </div>
  );
}

/** Bring a row into sight, and give it the focus once it is there. */
function reveal(box: HTMLElement, index: number, height: number): void {
  const top = index * height;
  const least = top + 2 * height + ROW - box.clientHeight;
  box.scrollTop = Math.max(Math.min(box.scrollTop, top), least);
  requestAnimationFrame(() =>
    box
      .querySelector<HTMLElement>(`[aria-rowindex="${index + 2}"]`)
      ?.focus({ preventScroll: true }),
  );
}

function Heads({ columns, sort }: { columns: List["columns"]; sort: string }) {
  const onSort = (id: string): void => setParams({ sort: sort === `-${id}` ? id : `-${id}` });
  return (
    <thead>
      <tr>
        <td />
        {columns.map((one) =>
          SORTED.includes(one.id) ? (
            <Head key={one.id} column={one} sort={sort} onSort={onSort} />
          ) : (
            <th key={one.id} scope="col" class={one.align ?? ""} title={one.hint}>
              {one.title}
            </th>
          ),
        )}
      </tr>
    </thead>
  );
}

function Hundred(props: {
  page: number;
  from: number;
  to: number;
  params: Within;
  follow: boolean;
  list: List;
}) {
  const { page, to, params, list, follow } = props;
  const offset = page * PAGE;
  const { data } = useAnswer("sessions", { ...params, limit: PAGE, offset }, { follow });
  useLayoutEffect(() => list.onRows(data?.sessions ?? []), [data]);
  const rows = [];
  for (let index = props.from; index < to; index++) {
    const line = data?.sessions[index - offset];
    rows.push(
      line ? (
        <Row key={line.row.span_id} line={line} index={index} list={list} />
      ) : (
        <tr key={index} aria-rowindex={index + 2}>
          <td colSpan={list.columns.length}>…</td>
        </tr>
      ),
    );
  }
  return <tbody>{rows}</tbody>;
}

function Row({ line, index, list }: { line: SessionLine; index: number; list: List }) {
  const id = line.row.span_id;
  const name = sessionName(line.row, id);
  const isMarked = marked.value.includes(id);
  const isUnfolded = list.unfolded?.id === id;
  const onKey = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget) return;
    if (event.key === "Enter") navigate(link("session", id));
    if (event.key === " ") {
      event.preventDefault();
      toggleMarked(id);
    }
  };
  return (
    <>
      <tr
        aria-rowindex={index + 2}
        tabIndex={index === list.at ? 0 : -1}
        class={isMarked ? "chosen" : ""}
        onKeyDown={onKey}
      >
        <td class="list-tools">
          <label>
            <input
              type="checkbox"
              checked={isMarked}
              onChange={() => toggleMarked(id)}
              aria-label={`Mark ${name}`}
            />
          </label>
          <button
            class="plain"
            aria-expanded={isUnfolded}
            aria-label={`Path of ${name}`}
            onClick={() => list.onUnfold(isUnfolded ? null : { id, index })}
          >
            {isUnfolded ? "▾" : "▸"}
          </button>
        </td>
        {list.columns.map((one) => (
          <td key={one.id} class={`${one.align ?? ""} list-${one.id}`} data-title={one.title}>
            {(one.render ?? one.value)(line)}
          </td>
        ))}
      </tr>
      {isUnfolded && (
        <tr class="unfolded">
          <td colSpan={list.columns.length + 1}>
            <Path id={id} overview={list.overview} />
          </td>
        </tr>
      )}
    </>
  );
}
