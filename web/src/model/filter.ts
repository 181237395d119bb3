/** The filter language, read in the page as Python reads it; one golden file holds both to it.
 *
 *     phase:toolcall host:gpu-07 ran>30s outcome:failed,timeout reward<=0 -env:swe "some text"
 *
 * A space is AND, a comma is OR, a minus in front is NOT.
 */

export type Operator = ":" | "<" | "<=" | ">" | ">=";
export type Value = string | number | null;

export interface Comparison {
  type: "comparison";
  field: string;
  operator: Operator;
  values: readonly Value[];
}
export interface Text {
  type: "text";
  values: readonly string[];
}
export interface Not {
  type: "not";
  term: Comparison | Text;
}
export type Term = Comparison | Text | Not;
export interface Filter {
  type: "all";
  terms: readonly Term[];
}

export interface FilterError {
  /** Which character, counted as a reader counts them. */
  at: number;
  message: string;
}

type Type = "text" | "integer" | "number" | "duration" | "choice" | "id" | "attribute";

interface Field {
  name: string;
  type: Type;
  choices?: readonly string[];
}

const OUTCOMES = ["accepted", "rejected", "failed", "timeout", "dropped", "cancelled"];
const STATUSES = ["open", "ok", "error", "cancelled", "lost"];
const TYPES: Readonly<Record<string, Type>> = {
  attempt: "integer",
  consumed: "integer",
  detail: "text",
  dispatched: "integer",
  env: "text",
  family: "text",
  group: "text",
  host: "text",
  id: "id",
  name: "text",
  outcome: "choice",
  phase: "text",
  pool: "text",
  ran: "duration",
  rank: "integer",
  reason: "text",
  replica: "text",
  reward: "number",
  role: "text",
  sample: "integer",
  status: "choice",
  step: "integer",
  task: "text",
  tokens: "integer",
  tokens_in: "integer",
  tool: "text",
  turns: "integer",
  version: "integer",
  waited: "duration",
};
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  outcome: OUTCOMES,
  status: STATUSES,
};

/** Every field, for completion. */
export const FIELD_NAMES: readonly string[] = Object.keys(TYPES);
export const ATTRIBUTE_PREFIX = "attr.";
const MISSING = "none";
const NS = { ms: 1_000_000n, s: 1_000_000_000n, min: 60_000_000_000n, h: 3_600_000_000_000n };
const LONGEST_NS = 100n * 24n * NS.h;

const SPACE = " \\t\\r\\n\\u00a0"; // named, since languages differ in what else they call space
const KEY = new RegExp(`([^${SPACE}",:<>=!]+)(<=|>=|!=|[:<>=])`, "y");
const WORD = new RegExp(`[^${SPACE}",]+`, "y");
const IS_SPACE = new RegExp(`^[${SPACE}]$`);
const SIGN = /!=|[:<>=]/y;
export const NUMBER = /^-?[0-9]{1,16}(\.[0-9]{1,16})?$/;

class Wrong extends Error {
  constructor(
    message: string,
    readonly at: number,
  ) {
    super(message);
  }
}

interface Word {
  text: string;
  at: number;
  isQuoted: boolean;
}

/** Read a filter; what is wrong with it is given, not thrown. */
export function parseFilter(text: string): { filter: Filter } | { error: FilterError } {
  try {
    return { filter: { type: "all", terms: new Parser(text).read() } };
  } catch (error) {
    if (!(error instanceof Wrong)) throw error;
    return { error: { message: error.message, at: [...text.slice(0, error.at)].length } };
  }
}

class Parser {
  private at = 0;

  constructor(private readonly text: string) {}

  read(): Term[] {
    const terms: Term[] = [];
    while (this.skipSpace()) {
      terms.push(this.term());
      if (!this.isAtSpace()) throw new Wrong("a space is needed between two conditions", this.at);
    }
    return terms;
  }

  private skipSpace(): boolean {
    while (this.at < this.text.length && IS_SPACE.test(this.text[this.at]!)) this.at++;
    return this.at < this.text.length;
  }

  private isAtSpace(): boolean {
    return this.at === this.text.length || IS_SPACE.test(this.text[this.at]!);
  }

  private match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    return pattern.exec(this.text);
  }

  private term(): Term {
    if (this.text[this.at] !== "-") return this.positive();
    this.at++;
    if (this.isAtSpace() || this.text[this.at] === "-") {
      throw new Wrong("a minus needs a condition right behind it", this.at);
    }
    return { type: "not", term: this.positive() };
  }

  private positive(): Comparison | Text {
    const match = this.match(KEY);
    if (!match) {
      if (this.match(SIGN)) throw new Wrong("a field is missing in front of this", this.at);
      return { type: "text", values: this.words("a condition").map((word) => word.text) };
    }
    const [all, key = "", sign = ""] = match;
    const field = fieldOf(key, this.at);
    const operator = operatorOf(field, sign, this.at + key.length);
    this.at += all.length;
    const words = this.words(`a value for ${field.name}`);
    if (operator !== ":" && words.length > 1) {
      throw new Wrong(`only one value can follow ${operator}`, words[1]!.at);
    }
    const values = words.map((word) => valueOf(field, operator, word));
    return { type: "comparison", field: field.name, operator, values };
  }

  private words(wanted: string): Word[] {
    const words = [this.word(wanted)];
    while (this.text[this.at] === ",") {
      this.at++;
      words.push(this.word(wanted));
    }
    return words;
  }

  private word(wanted: string): Word {
    const at = this.at;
    if (this.text[at] === '"') return { text: this.quoted(), at, isQuoted: true };
    const match = this.match(WORD);
    if (!match) throw new Wrong(`${wanted} is missing here`, at);
    this.at += match[0].length;
    return { text: match[0], at, isQuoted: false };
  }

  /** Read up to the closing quote; a backslash takes the next character as it is. */
  private quoted(): string {
    const start = this.at++;
    let letters = "";
    while (this.at < this.text.length) {
      let letter = this.text[this.at++]!;
      if (letter === '"') return letters;
      if (letter === "\\" && this.at < this.text.length) letter = this.text[this.at++]!;
      letters += letter;
    }
    throw new Wrong("the quote that opens here is not closed", start);
  }
}

function fieldOf(key: string, at: number): Field {
  const type = Object.hasOwn(TYPES, key) ? TYPES[key] : undefined;
  if (type) return { name: key, type, choices: CHOICES[key] ?? [] };
  if (key.startsWith(ATTRIBUTE_PREFIX) && key.length > ATTRIBUTE_PREFIX.length) {
    return { name: key, type: "attribute" };
  }
  throw new Wrong(
    `there is no field ${key}; there are ${FIELD_NAMES.join(", ")}, and attr. with an ` +
      "attribute's name; text with a sign in it goes in quotes",
    at,
  );
}

function operatorOf(field: Field, sign: string, at: number): Operator {
  if (sign === "!=") throw new Wrong(`!= is written with a minus in front: -${field.name}:…`, at);
  if (sign === ":" || sign === "=") return ":";
  if (field.type === "text" || field.type === "choice" || field.type === "id") {
    throw new Wrong(`${field.name} has no order, only : can follow it`, at);
  }
  return sign as Operator;
}

function valueOf(field: Field, operator: Operator, word: Word): Value {
  if (word.text === MISSING && !word.isQuoted) {
    if (operator !== ":") throw new Wrong(`${MISSING} can only follow a colon`, word.at);
    return null;
  }
  if (field.type === "text" || (field.type === "attribute" && operator === ":")) return word.text;
  if (field.type === "duration" && operator === ":") {
    throw new Wrong(
      `${field.name} is compared with <, <=, > or >=; with a colon only to ${MISSING}`,
      word.at,
    );
  }
  return READERS[field.type](field, word);
}

function readNumber(field: Field, word: Word): number {
  if (!NUMBER.test(word.text)) throw new Wrong(`${field.name} is compared with a number`, word.at);
  return Number(word.text);
}

const READERS: Readonly<Record<Exclude<Type, "text">, (field: Field, word: Word) => Value>> = {
  integer(field, word) {
    const value = Number(word.text);
    if (!/^-?[0-9]{1,16}$/.test(word.text) || !Number.isSafeInteger(value)) {
      throw new Wrong(`${field.name} is compared with a whole number`, word.at);
    }
    return value === 0 ? 0 : value;
  },
  number: readNumber,
  attribute: readNumber,
  duration(field, word) {
    const match = /^([0-9]{1,16})(?:\.([0-9]{1,9}))?([A-Za-z]*)$/.exec(word.text);
    if (!match) {
      throw new Wrong(
        `${field.name} is compared with a duration such as 500ms, 30s, 1.5min or 2h`,
        word.at,
      );
    }
    const [, whole = "", part = "", unit = ""] = match;
    const unitNs = Object.hasOwn(NS, unit) ? NS[unit as keyof typeof NS] : undefined;
    if (unitNs === undefined) {
      const at = word.at + word.text.length - unit.length;
      throw new Wrong("a duration needs a unit: ms, s, min or h", at);
    }
    const ns = (BigInt(whole + part.padEnd(9, "0")) * unitNs) / 1_000_000_000n;
    if (ns > LONGEST_NS) throw new Wrong("a duration can be at most 100 days long", word.at);
    return Number(ns);
  },
  choice(field, word) {
    const choices = field.choices ?? [];
    if (!choices.includes(word.text)) {
      throw new Wrong(`${field.name} is one of ${choices.join(", ")}, ${MISSING}`, word.at);
    }
    return word.text;
  },
  id(field, word) {
    if (!/^[0-9a-fA-F]{1,16}$/.test(word.text)) {
      throw new Wrong(`${field.name} is compared with up to 16 hexadecimal digits`, word.at);
    }
    return word.text.toLowerCase().padStart(16, "0");
  },
};
