/** Columns of tables, in few words; numbers are written the same way in every table. */
import type { ComponentChildren } from "preact";
import { count, duration, number, percent, reward } from "../model/format";
import type { Column } from "./table";

type Read<T> = (row: T) => number | null | undefined;
type Show<T> = (row: T) => ComponentChildren;

/** A column whose title, in small letters, is its id. */
export function textCell<T>(
  title: string,
  value: Column<T>["value"],
  render?: Show<T>,
  hint = "",
): Column<T> {
  return { id: title.toLowerCase(), title, value, hint, ...(render && { render }) };
}

/** The same, for numbers: they stand at the right. */
export function cell<T>(...given: Parameters<typeof textCell<T>>): Column<T> {
  return { ...textCell(...given), align: "right" };
}

function written(write: (value: number | null | undefined) => string) {
  return <T>(title: string, value: Read<T>, hint = ""): Column<T> =>
    cell(title, value, (row) => write(value(row)), hint);
}

export const durationCell = written(duration);
export const shareCell = written(percent);
export const countCell = written((value) => count(value));
export const numberCell = written(number);
export const rewardCell = written(reward);
