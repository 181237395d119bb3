/** Tables: sorted by a click or a key, rows reached with J and K, cards on a phone, out as a file. */
import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { visible } from "../model/format";
import { saveFile } from "./copy";
import { type Column, sortRows, toCsv } from "./rows";

export type { Column } from "./rows";

export interface TableProps<T> {
  /** Names the table to assistive tools, and its exported file. */
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  rowKey: (row: T) => string;
  /** Column id, with a minus for the largest first. None: as given. */
  sort?: string;
  onSort?: (sort: string) => void;
  /** What Enter and a click open. */
  onOpen?: (row: T) => void;
  isChosen?: (row: T) => boolean;
  /** Rows shown before "Show all". */
  limit?: number;
  foot?: ComponentChildren;
}

export function Table<T>(props: TableProps<T>) {
  const [own, setOwn] = useState(props.sort ?? "");
  const sort = props.onSort ? (props.sort ?? "") : own;
  const [isWhole, setWhole] = useState(false);
  const sorted = useMemo(
    () => sortRows(props.rows, props.columns, sort),
    [props.rows, props.columns, sort],
  );
  const limit = isWhole ? Infinity : (props.limit ?? 50);
  const body = useRef<HTMLTableSectionElement>(null);
  const onHead = (id: string): void => {
    const next = sort === `-${id}` ? id : `-${id}`;
    if (props.onSort) props.onSort(next);
    else setOwn(next);
  };
  return (
    <div class="table-box">
      <div class="table-scroll">
        <table class="table" aria-label={props.label}>
          <thead>
            <tr>
              {props.columns.map((column) => (
                <Head key={column.id} column={column} sort={sort} onSort={onHead} />
              ))}
            </tr>
          </thead>
          <tbody ref={body} onKeyDown={(event) => moveFocus(event, body.current)}>
            {sorted.slice(0, limit).map((row, index) => (
              <Row key={props.rowKey(row)} row={row} isFirst={index === 0} table={props} />
            ))}
          </tbody>
          {props.foot && <tfoot>{props.foot}</tfoot>}
        </table>
      </div>
      <div class="table-foot row">
        {sorted.length > limit && (
          <button class="link" onClick={() => setWhole(true)}>
            Show all {sorted.length}
          </button>
        )}
        <ExportButtons label={props.label} columns={props.columns} rows={sorted} />
      </div>
    </div>
  );
}

export function Head<T>(props: { column: Column<T>; sort: string; onSort: (id: string) => void }) {
  const { column, sort } = props;
  const order = sort === column.id ? "ascending" : sort === `-${column.id}` ? "descending" : "none";
  return (
    <th scope="col" class={column.align ?? ""} aria-sort={order} title={column.hint}>
      <button class="th" onClick={() => props.onSort(column.id)}>
        {column.title}
        <span aria-hidden="true">
          {order === "none" ? "" : order === "ascending" ? " ▲" : " ▼"}
        </span>
      </button>
    </th>
  );
}

function Row<T>({ row, isFirst, table }: { row: T; isFirst: boolean; table: TableProps<T> }) {
  const { onOpen, isChosen, columns } = table;
  return (
    <tr
      tabIndex={onOpen ? (isFirst ? 0 : -1) : undefined}
      class={`${onOpen ? "opens" : ""} ${isChosen?.(row) ? "chosen" : ""}`}
      onClick={(event) => {
        const control = (event.target as HTMLElement).closest("a, button, input, summary");
        if (onOpen && !control && !getSelection()?.toString()) onOpen(row);
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter" && event.target === event.currentTarget) onOpen?.(row);
      }}
    >
      {columns.map((column) => (
        <td key={column.id} class={column.align ?? ""} data-title={column.title}>
          {column.render ? column.render(row) : plain(column.value(row))}
        </td>
      ))}
    </tr>
  );
}

function plain(value: string | number | null | undefined): string {
  return value === null || value === undefined ? "–" : visible(String(value));
}

function moveFocus(event: KeyboardEvent, body: HTMLTableSectionElement | null): void {
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
  const row = (event.target as HTMLElement).closest("tr");
  if (step === undefined || !row || !body || event.target !== row) return;
  const next = step > 0 ? row.nextElementSibling : row.previousElementSibling;
  if (next instanceof HTMLElement) {
    next.focus();
    event.preventDefault();
  }
}

function ExportButtons<T>(props: {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
}) {
  const name = props.label.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return (
    <span class="spread row exports">
      <button
        class="link"
        onClick={() => saveFile(`${name}.csv`, "text/csv", toCsv(props.columns, props.rows))}
        aria-label={`Save ${props.label} as CSV`}
      >
        CSV
      </button>
      <button
        class="link"
        onClick={() => saveFile(`${name}.json`, "application/json", JSON.stringify(props.rows))}
        aria-label={`Save ${props.label} as JSON`}
      >
        JSON
      </button>
    </span>
  );
}
