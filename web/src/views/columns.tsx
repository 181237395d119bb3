/** Upright bars of parts, each a link: arrows go from one to the next, Enter opens it. */
import { useEffect, useRef, useState } from "preact/hooks";
import { duration, percent, sum } from "../model/format";
import type { Share } from "./splitbar";
import { TableButton } from "./tablebutton";

export interface Column {
  key: string;
  label: string;
  href: string;
  total: number;
  /** Not over yet: drawn with an open top. */
  isOpen: boolean;
  parts: readonly Share[];
}

/** The parts that there are, in the order in which they come up. */
function partsOf(columns: readonly Column[]): Share[] {
  const sums = new Map<string, Share>();
  for (const column of columns) {
    for (const part of column.parts) {
      const before = sums.get(part.label);
      sums.set(part.label, { ...part, value: part.value + (before?.value ?? 0) });
    }
  }
  return [...sums.values()].filter((one) => one.value > 0);
}

/** The ones with most first, and what has no name last. */
function bySize(parts: readonly Share[]): Share[] {
  const rank = (one: Share): number => (one.label === "other" ? -1 : one.value);
  return [...parts].sort((a, b) => rank(b) - rank(a));
}

export function Columns(props: {
  label: string;
  columns: readonly Column[];
  /** Parts stand as they are given, not by size. */
  isOrdered?: boolean;
}) {
  const { columns } = props;
  const [isTable, setTable] = useState(false);
  const kinds = props.isOrdered ? partsOf(columns) : bySize(partsOf(columns));
  return (
    <figure class="chart">
      {isTable ? <ColumnTable {...props} kinds={kinds} /> : <Bars {...props} kinds={kinds} />}
      <figcaption class="row">
        <ul class="legend row">
          {kinds.map((one) => (
            <li key={one.label} title={duration(one.value)}>
              <i
                class={`swatch ${one.texture ?? ""}`}
                style={{ backgroundColor: `var(${one.colour})` }}
              />{" "}
              {one.label}
            </li>
          ))}
        </ul>
        <TableButton isTable={isTable} onChange={setTable} />
      </figcaption>
    </figure>
  );
}

interface Drawn {
  label: string;
  columns: readonly Column[];
  kinds: readonly Share[];
}

function Bars({ label, columns, kinds }: Drawn) {
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const most = Math.max(1, ...columns.map((one) => one.total));
  const current = at === null || at >= columns.length ? columns.length - 1 : at;
  useEffect(() => {
    // The latest steps are what is asked for first.
    if (box.current) box.current.scrollLeft = box.current.scrollWidth;
  }, [columns.length]);
  const onKey = (event: KeyboardEvent): void => {
    const move = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (move === undefined) return;
    event.preventDefault();
    const next = Math.min(Math.max(current + move, 0), columns.length - 1);
    setAt(next);
    box.current?.querySelectorAll("a")[next]?.focus();
  };
  const shown = at === null ? undefined : columns[at];
  return (
    <>
      <div class="bars" role="group" aria-label={label} ref={box} onKeyDown={onKey}>
        {columns.map((one, i) => (
          <a
            key={one.key}
            href={one.href}
            class={`bar ${one.isOpen ? "open" : ""}`}
            tabIndex={i === current ? 0 : -1}
            aria-label={`Step ${one.label}: ${duration(one.total)}${one.isOpen ? ", running" : ""}`}
            onFocus={() => setAt(i)}
            onPointerEnter={() => setAt(i)}
          >
            <span class="bar-track">
              <span class="bar-stack" style={{ height: `${(one.total / most) * 100}%` }}>
                <Stack column={one} kinds={kinds} />
              </span>
            </span>
            <span class="bar-label" aria-hidden="true">
              {one.label}
            </span>
          </a>
        ))}
      </div>
      <p class="canvas-note dim">
        {shown ? describe(shown, kinds) : `The tallest is ${duration(most)}.`}
      </p>
    </>
  );
}

function Stack({ column, kinds }: { column: Column; kinds: readonly Share[] }) {
  return (
    <>
      {kinds.map((kind) => {
        const value = column.parts.find((one) => one.label === kind.label)?.value ?? 0;
        if (value <= 0) return null;
        return (
          <i
            key={kind.label}
            class={kind.texture ?? ""}
            style={{
              height: `${(value / (column.total || 1)) * 100}%`,
              backgroundColor: `var(${kind.colour})`,
            }}
          />
        );
      })}
    </>
  );
}

function describe(column: Column, kinds: readonly Share[]): string {
  const shown = kinds
    .map((kind) => column.parts.find((one) => one.label === kind.label))
    .filter((one): one is Share => one !== undefined && one.value / column.total >= 0.01)
    .map((one) => ({ label: one.label, value: one.value }));
  const rest = column.total - shown.reduce((all, one) => all + one.value, 0);
  if (rest > 0) shown.push({ label: "the rest", value: rest });
  const said = sum(
    column.total,
    shown.map((one) => one.value),
  );
  const parts = shown.map(
    (one, at) => `${one.label} ${said.parts[at]} (${percent(one.value / column.total)})`,
  );
  return `Step ${column.label}: ${said.whole}${column.isOpen ? " so far" : ""} = ${parts.join(" + ")}`;
}

function ColumnTable({ label, columns, kinds }: Drawn) {
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label={label}>
      <table class="table" aria-label={label}>
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col" class="right">
              All
            </th>
            {kinds.map((one) => (
              <th scope="col" class="right" key={one.label}>
                {one.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {columns.map((one) => (
            <tr key={one.key}>
              <th scope="row">
                <a href={one.href}>{one.label}</a>
              </th>
              <td class="right nowrap">{duration(one.total)}</td>
              {kinds.map((kind) => (
                <td class="right nowrap" key={kind.label}>
                  {duration(one.parts.find((part) => part.label === kind.label)?.value ?? 0)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
