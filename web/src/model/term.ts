/** Terms of the filter language, written so that any value is read as itself. */

const NEEDS_QUOTES = /[\s",\\:<>=!-]/;

function quoted(value: string): string {
  if (value !== "" && value !== "none" && !NEEDS_QUOTES.test(value)) return value;
  return `"${value.replace(/["\\]/g, (mark) => `\\${mark}`)}"`;
}

/** `field:one,two` */
export function term(field: string, ...values: readonly (string | number)[]): string {
  return `${field}:${values.map((value) => (typeof value === "number" ? value : quoted(value))).join(",")}`;
}

/** `ran>=1.5s`, from nanoseconds. */
export function lengthTerm(field: string, sign: "<" | "<=" | ">" | ">=", ns: number): string {
  const seconds = (Math.max(ns, 0) / 1e9).toFixed(9).replace(/\.?0+$/, "");
  return `${field}${sign}${seconds}s`;
}
