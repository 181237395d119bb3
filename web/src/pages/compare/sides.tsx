/** The two sides of a comparison, to be chosen. */
import { useEffect, useState } from "preact/hooks";
import type { Overview } from "../../model/answers";
import { visible } from "../../model/format";
import { setParams } from "../../state/route";
import { source } from "../../state/source";
import type { Compared } from "./page";

/** Key in the address, label, what stands there, and what it means to leave it empty. */
type Field = readonly [string, string, string, string];

function fieldsOf(compared: Compared, { steps }: Overview): readonly Field[] {
  if (compared.kind === "sessions") {
    return [
      ["fa", "These sessions", compared.filterA, "outcome:failed"],
      ["fb", "against", compared.filterB, "all others"],
    ];
  }
  const { first, last } = steps;
  const empty = compared.kind === "runs" ? "all" : first === null ? "" : `${first}-${last}`;
  return [
    ["sa", "Steps of A", compared.stepsA, empty],
    ["sb", "Steps of B", compared.stepsB, empty],
  ];
}

export function Sides({ compared, overview }: { compared: Compared; overview: Overview }) {
  const apply = (event: SubmitEvent): void => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    setParams(Object.fromEntries([...given].map(([key, value]) => [key, String(value).trim()])));
  };
  return (
    <form class="sides row" onSubmit={apply}>
      {compared.kind === "runs" && <RunPicker overview={overview} chosen={compared.other} />}
      {fieldsOf(compared, overview).map(([name, label, value, empty]) => (
        <label key={name} class={name}>
          {label} <input name={name} defaultValue={value} placeholder={empty} spellcheck={false} />
        </label>
      ))}
      <button type="submit">Compare</button>
    </form>
  );
}

function RunPicker({ overview, chosen }: { overview: Overview; chosen: string }) {
  const [names, setNames] = useState<string[]>([]);
  useEffect(() => {
    source()
      .runs()
      .then(
        ({ runs }) => {
          const found = runs.map((one) => one.name);
          setNames(found);
          // The newest comes first, so the one before this stands behind it.
          const before =
            found[found.indexOf(overview.name) + 1] ?? found.find((one) => one !== overview.name);
          if (!chosen && before) setParams({ by: "runs", b: before }, { replace: true });
        },
        () => undefined,
      );
  }, []);
  const others = new Set([chosen, ...names]);
  others.delete(overview.name);
  return (
    <label>
      A: this run, B:{" "}
      <select
        value={chosen}
        onChange={(event) => setParams({ by: "runs", b: event.currentTarget.value })}
      >
        {[...others].map((one) => (
          <option key={one} value={one}>
            {one ? visible(one) : "choose a run"}
          </option>
        ))}
      </select>
    </label>
  );
}
