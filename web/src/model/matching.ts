/** What a filter means for a session of a list; the report filters with it, Python everything else.
 *
 * What is missing equals nothing and is neither more nor less than anything, so that its negation
 * holds. A list carries no spans but the names of phases: `unknownFields` says what cannot be told.
 */
import type { ProcessLine, SessionLine, SessionRow } from "./answers";
import {
  ATTRIBUTE_PREFIX,
  type Comparison,
  type Filter,
  NUMBER,
  type Term,
  type Text,
  type Value,
} from "./filter";

const FIELDS: Readonly<Record<string, keyof SessionRow>> = {
  attempt: "attempt",
  consumed: "consumed_step",
  dispatched: "step",
  family: "family",
  group: "group",
  host: "host",
  id: "span_id",
  outcome: "outcome",
  pool: "pool",
  reason: "reason",
  replica: "pool",
  reward: "reward",
  sample: "sample",
  status: "status",
  task: "task_key",
  tokens: "tokens_out",
  tokens_in: "tokens_in",
  turns: "turns",
  version: "version_start",
  waited: "waited_ns",
};
const SPAN_FIELDS = ["detail", "env", "name", "tool"];

/** Fields of a filter that the lines of a list do not carry; their conditions hold for none. */
export function unknownFields(filter: Filter): string[] {
  const fields = filter.terms.map((term) => (term.type === "not" ? term.term : term));
  return fields
    .filter((term): term is Comparison => term.type === "comparison")
    .map((term) => term.field)
    .filter((field) => SPAN_FIELDS.includes(field));
}

/** Say whether a filter lets a session through.
 *
 * @param process who recorded it; without, it has neither role nor rank
 */
export function matchesLine(filter: Filter, line: SessionLine, process?: ProcessLine): boolean {
  const holds = (term: Term): boolean => {
    if (term.type === "not") return !holds(term.term);
    return term.type === "text" ? hasText(term, line) : compares(term, line, process);
  };
  return filter.terms.every(holds);
}

function hasText(term: Text, { row, phases }: SessionLine): boolean {
  const facts = [row.task_key, row.family, row.group, row.host, row.pool, row.outcome, row.reason];
  const texts = [...facts, ...Object.values(row.attrs), ...Object.keys(phases)]
    .filter((one): one is string => typeof one === "string")
    .map((one) => one.toLowerCase());
  return term.values.some((value) => texts.some((one) => one.includes(value.toLowerCase())));
}

function compares(term: Comparison, line: SessionLine, process: ProcessLine | undefined): boolean {
  const known = factsOf(term.field, line, process).filter(
    (fact) => fact !== null && fact !== undefined && fact !== "",
  );
  if (known.length === 0) return term.values.includes(null);
  return known.some((fact) => term.values.some((value) => compare(fact, term.operator, value)));
}

function factsOf(field: string, line: SessionLine, process: ProcessLine | undefined): unknown[] {
  if (field.startsWith(ATTRIBUTE_PREFIX)) {
    const name = field.slice(ATTRIBUTE_PREFIX.length);
    return Object.hasOwn(line.row.attrs, name) ? [line.row.attrs[name]] : [];
  }
  if (field === "phase") return Object.keys(line.phases);
  if (field === "ran") return [line.ran_ns];
  if (field === "step") return [line.row.consumed_step ?? line.row.step];
  if (field === "role" || field === "rank") return [process?.[field]];
  const own = FIELDS[field];
  return own ? [line.row[own]] : [];
}

function compare(fact: unknown, operator: Comparison["operator"], value: Value): boolean {
  if (value === null) return false;
  if (operator === ":") return equals(fact, value);
  if (typeof fact !== "number" || typeof value !== "number") return false;
  if (operator === "<") return fact < value;
  if (operator === "<=") return fact <= value;
  return operator === ">" ? fact > value : fact >= value;
}

/** Compare as written; an attribute that is a number, by value, so that 5 equals 5.0. */
function equals(fact: unknown, value: string | number): boolean {
  if (typeof value === "number") return fact === value;
  if (typeof fact === "number") return NUMBER.test(value) && Number(value) === fact;
  return typeof fact === "boolean" ? String(fact) === value : fact === value;
}
