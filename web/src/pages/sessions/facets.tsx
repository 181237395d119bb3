/** What the sessions have in common: values with counts, each a condition one click away. */
import { useState } from "preact/hooks";
import type { Facet, Facets } from "../../model/answers";
import { count, grouped, plural, visible } from "../../model/format";
import { hasTerm, toggleTerm } from "../../model/narrow";
import type { Asked } from "../../state/answer";
import { setParams } from "../../state/route";
import { Text } from "../../views/bits";
import { Panel } from "../../views/panel";

const SHOWN = 6;

export function FacetsPanel({ asked, filter }: { asked: Asked<Facets>; filter: string }) {
  return (
    <Panel
      title="Facets"
      className="facets"
      hint={asked.data && `${grouped(asked.data.matched)} of ${plural(asked.data.of, "session")}`}
      asked={asked}
    >
      {(data) => (
        <details open={innerWidth >= 700}>
          <summary>Narrow by</summary>
          {data.facets
            .filter(
              (facet) =>
                facet.values.length > 1 || facet.values.some((one) => hasTerm(filter, one.term)),
            )
            .map((facet) => (
              <Values key={facet.field} facet={facet} filter={filter} />
            ))}
        </details>
      )}
    </Panel>
  );
}

function Values({ facet, filter }: { facet: Facet; filter: string }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? facet.values : facet.values.slice(0, SHOWN);
  const hidden = facet.values.length - shown.length;
  return (
    <section class="facet">
      <h3>{facet.field}</h3>
      <ul>
        {shown.map((one) => (
          <li key={one.term}>
            <button
              class="facet-value"
              title={visible(one.term)}
              aria-pressed={hasTerm(filter, one.term)}
              onClick={() => setParams({ f: toggleTerm(filter, one.term) })}
            >
              <span>{one.value === null ? <i>none</i> : <Text text={one.value} max={60} />}</span>
              <span class="dim">{count(one.count)}</span>
            </button>
          </li>
        ))}
      </ul>
      {hidden > 0 && (
        <button class="link" onClick={() => setWhole(true)}>
          {hidden} more
        </button>
      )}
    </section>
  );
}
