/** Columns of numbers, which are written the same way in every table. */
import { count, duration, number, percent, slotSeconds } from "../model/format";
import type { Column } from "./table";

type Read<T> = (row: T) => number | null | undefined;

/** A column of numbers; its title, in small letters, is its id. */
function written(write: (value: number | null | undefined) => string) {
  return <T>(title: string, value: Read<T>, hint = ""): Column<T> => ({
    id: title.toLowerCase(),
    title,
    value,
    render: (row) => write(value(row)),
    align: "right",
    hint,
  });
}

export const durationCell = written(duration);
export const shareCell = written(percent);
export const countCell = written((value) => count(value));
export const numberCell = written(number);
export const slotCell = written((value) => slotSeconds(value ?? 0));
