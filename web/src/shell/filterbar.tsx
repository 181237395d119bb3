/** The filter box: one small language, kept in the address, completed from what the run has. */
import { useEffect, useRef, useState } from "preact/hooks";
import { FIELD_NAMES, parseFilter, type FilterError } from "../model/filter";
import { completions } from "../model/narrow";
import { useAnswer } from "../state/answer";
import { param, setParams } from "../state/route";

const BOX = "filter-box";
const FIELDS: readonly string[] = FIELD_NAMES.map((name) => `${name}:`);
const MOST_SHOWN = 40;

export function focusFilter(): void {
  document.getElementById(BOX)?.focus();
}

export function FilterBar() {
  const given = param("f");
  const [text, setText] = useState(given);
  const [error, setError] = useState<FilterError | null>(null);
  const [isUsed, setUsed] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const applied = useRef(given);
  useEffect(() => {
    const parsed = parseFilter(given);
    // What came from this box stays as it is: somebody may be typing on.
    if (given !== applied.current) setText(given);
    applied.current = given;
    setError("error" in parsed ? parsed.error : null);
  }, [given]);
  const apply = (value: string): void => {
    const parsed = parseFilter(value);
    if ("error" in parsed) {
      setError(parsed.error);
      input.current?.setSelectionRange(parsed.error.at, parsed.error.at + 1);
      return;
    }
    setError(null);
    applied.current = value.trim();
    setParams({ f: value.trim() || null });
  };
  return (
    <form
      class="filterbar"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        apply(text);
      }}
    >
      <label for={BOX}>Filter</label>
      <input
        id={BOX}
        ref={input}
        value={text}
        list="filter-words"
        spellcheck={false}
        autocomplete="off"
        placeholder='phase:toolcall host:gpu-07 ran>30s outcome:failed,timeout -family:swe "text"'
        aria-invalid={error !== null}
        aria-describedby={error ? "filter-error" : undefined}
        onFocus={() => setUsed(true)}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
      {isUsed && <Words text={text} />}
      <button type="submit">Apply</button>
      {given && (
        <button type="button" onClick={() => setParams({ f: null })}>
          Clear
        </button>
      )}
      {error && (
        <p id="filter-error" class="bad" role="alert">
          At character {error.at + 1}: {error.message}
        </p>
      )}
    </form>
  );
}

/** What could be written next: fields, and the values that sessions of the run have. */
function Words({ text }: { text: string }) {
  const { data } = useAnswer("facets", {}, { follow: false });
  const values = data?.facets.flatMap((facet) => facet.values.map((one) => one.term)) ?? [];
  return (
    <datalist id="filter-words">
      {completions(text, [...values, ...FIELDS])
        .slice(0, MOST_SHOWN)
        .map((one) => (
          <option key={one} value={one} />
        ))}
    </datalist>
  );
}
