/** Since when something is different: shifts that lasted. */
import type { Change, Steps } from "../../model/answers";
import { change, duration, number, percent } from "../../model/format";
import type { Asked } from "../../state/answer";
import { link } from "../../state/route";
import { Panel } from "../../views/panel";

export function ChangesPanel({ asked }: { asked: Asked<Steps> }) {
  return (
    <Panel
      title="Changes"
      hint="five steps against the ten before them"
      asked={asked}
      empty={({ changes, of }) =>
        changes.marks.length
          ? null
          : of < 15
            ? "Fifteen steps are needed to tell a change from chance."
            : "No series shifted for good."
      }
    >
      {({ changes }) => {
        const rest = changes.marks.filter(
          (one) => !changes.largest.some((top) => isSame(one, top)),
        );
        return (
          <>
            <ul class="changes">
              {changes.largest.map((one) => (
                <ChangeLine key={`${one.series} ${one.step}`} one={one} />
              ))}
            </ul>
            {rest.length > 0 && (
              <details>
                <summary>{rest.length} smaller ones</summary>
                <ul class="changes">
                  {rest.map((one) => (
                    <ChangeLine key={`${one.series} ${one.step}`} one={one} />
                  ))}
                </ul>
              </details>
            )}
          </>
        );
      }}
    </Panel>
  );
}

function isSame(one: Change, other: Change): boolean {
  return one.series === other.series && one.step === other.step;
}

function ChangeLine({ one }: { one: Change }) {
  return (
    <li>
      Since <a href={link("step", one.step)}>step {one.step}</a>: {one.series}{" "}
      {write(one.series, one.before)} → <b>{write(one.series, one.after)}</b>{" "}
      {one.before !== 0 && <span class="dim">({change(one.after / one.before - 1)})</span>}
    </li>
  );
}

function write(series: string, value: number): string {
  if (series === "wall" || series === "tail") return duration(value * 1e9);
  return series.startsWith("share of") ? percent(value) : number(value);
}
