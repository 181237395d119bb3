/** Answers of a report as the pages know them: the inverse of `rollscope/reports/compact.py`. */

type Packed = unknown;
type Column = readonly unknown[];

/** What is said of a session, by its number in the list of sessions. */
export type Lookup = (number: number, field: string) => unknown;

const HOLE = Symbol("no such key");

/** Give an answer as it was. */
export function unpack(node: Packed, known: Lookup): unknown {
  if (Array.isArray(node)) return list(node, known);
  return isObject(node) ? fields(node, known) : node;
}

function isObject(node: unknown): node is Record<string, Packed> {
  return typeof node === "object" && node !== null;
}

/** Without a prototype, since a run may name a phase `__proto__`. */
function blank(): Record<string, unknown> {
  return Object.create(null) as Record<string, unknown>;
}

function fields(node: Record<string, Packed>, known: Lookup): Record<string, unknown> {
  const numbers = numbersOf(node, known);
  const made = blank();
  for (const [key, item] of Object.entries(node)) {
    made[key] = Array.isArray(item) ? list(item, known, numbers) : unpack(item, known);
  }
  return made;
}

/** The numbers of the sessions that columns are about. */
function numbersOf(columns: Record<string, Packed>, known: Lookup): number[] {
  for (const ids of [columns["session_id"], columns["sessions"]]) {
    if (Array.isArray(ids) && ids[0] === 7) return list(ids[1] as Column, known) as number[];
  }
  return [];
}

function list(node: Column, known: Lookup, numbers: number[] = []): unknown[] {
  const [tag, a, b] = node as [number, unknown, unknown];
  switch (tag) {
    case 1:
      return table(a as number, b as Record<string, Packed>, known);
    case 2:
    case 3: {
      let sum = 0;
      return node.slice(3).map((value) => {
        sum = (tag === 2 ? sum : 0) + (value as number);
        return (a as number) + (b as number) * sum;
      });
    }
    case 4:
      return node.slice(2).map((place) => (a as Column)[place as number]);
    case 5:
      return new Array<unknown>(a as number).fill(b);
    case 6:
      return withGaps(a === 1 ? null : HOLE, b as number[], list(node[3] as Column, known));
    case 7:
      return list(a as Column, known).map((number) => known(number as number, "span_id"));
    case 8:
      return numbers.map((number) => known(number, a as string));
    default:
      return node.slice(1).map((item) => unpack(item, known));
  }
}

function table(length: number, columns: Record<string, Packed>, known: Lookup): unknown[] {
  const rows = Array.from({ length }, blank);
  const numbers = numbersOf(columns, known);
  for (const [key, column] of Object.entries(columns)) {
    list(column as Column, known, numbers).forEach((value, at) => {
      if (value !== HOLE) rows[at]![key] = value;
    });
  }
  return rows;
}

function withGaps(gap: unknown, counts: number[], given: unknown[]): unknown[] {
  let at = 0;
  return counts.flatMap((count, turn) =>
    turn % 2 === 0 ? new Array<unknown>(count).fill(gap) : given.slice(at, (at += count)),
  );
}
