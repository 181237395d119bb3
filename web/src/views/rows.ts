/** Rows of a table as data: their order, and the file they are saved as. */
import type { ComponentChildren } from "preact";

export interface Column<T> {
  id: string;
  title: string;
  /** What is sorted by and exported. */
  value: (row: T) => string | number | null | undefined;
  /** What is shown; the value if not given. */
  render?: (row: T) => ComponentChildren;
  align?: "right";
  hint?: string;
}

/** Sort stably; what has no value comes last either way. */
export function sortRows<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  sort: string,
): readonly T[] {
  const isDown = sort.startsWith("-");
  const column = columns.find((one) => one.id === (isDown ? sort.slice(1) : sort));
  if (!column) return rows;
  return [...rows].sort((a, b) => {
    const [x, y] = [column.value(a), column.value(b)];
    const [noX, noY] = [x === null || x === undefined, y === null || y === undefined];
    if (noX || noY) return Number(noX) - Number(noY);
    const order =
      typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
    return isDown ? -order : order;
  });
}

export function toCsv<T>(columns: readonly Column<T>[], rows: readonly T[]): string {
  const cell = (value: string | number | null | undefined): string => {
    const text = value === null || value === undefined ? "" : String(value);
    // A spreadsheet would run what begins like a formula.
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  const lines = [columns.map((one) => cell(one.title))];
  for (const row of rows) lines.push(columns.map((one) => cell(one.value(row))));
  return `${lines.map((line) => line.join(",")).join("\n")}\n`;
}
