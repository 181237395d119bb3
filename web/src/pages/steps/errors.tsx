/** Kinds of errors from step to step; where each came up first is marked. */
import { useState } from "preact/hooks";
import type { ErrorStrip, StepSeries } from "../../model/answers";
import { plural } from "../../model/format";
import { term } from "../../model/term";
import type { Asked } from "../../state/answer";
import { link } from "../../state/route";
import { Text } from "../../views/bits";
import { Panel } from "../../views/panel";
import { TableButton } from "../../views/tablebutton";

const SHOWN = 12;

export function ErrorsPanel({ asked }: { asked: Asked<StepSeries> }) {
  const [isTable, setTable] = useState(false);
  return (
    <Panel
      title="Errors by step"
      asked={asked}
      empty={(data) => (data.errors.length ? null : "No span of these steps ended in an error.")}
      hint={`by the step that dispatched them${(asked.data?.errors.length ?? 0) > SHOWN ? `; the ${SHOWN} most frequent kinds` : ""}`}
      actions={<TableButton isTable={isTable} onChange={setTable} picture="Strips" />}
    >
      {(data) =>
        isTable ? (
          <StripTable series={data} />
        ) : (
          <ul class="strips">
            {data.errors.slice(0, SHOWN).map((one) => (
              <Strip key={`${one.name} ${one.kind}`} strip={one} steps={data.steps} />
            ))}
          </ul>
        )
      }
    </Panel>
  );
}

function Strip({ strip, steps }: { strip: ErrorStrip; steps: readonly number[] }) {
  const most = Math.max(1, ...strip.counts);
  return (
    <li>
      <span class="strip-name">
        <a href={link("sessions", "", { f: term("reason", strip.kind) })}>
          <Text text={strip.kind} max={40} />
        </a>{" "}
        <span class="dim">
          in <Text text={strip.name} max={24} />
        </span>
      </span>
      <span class="strip" aria-hidden="true">
        {strip.counts.map((count, i) => (
          <i
            key={i}
            title={`step ${steps[i]}: ${count}`}
            class={strip.first_step === steps[i] ? "first" : ""}
            style={
              count
                ? {
                    background: `var(--heat-${1 + Math.round((count / most) * 3)})`,
                  }
                : {}
            }
          />
        ))}
      </span>
      <span class="strip-note in-text">
        {plural(strip.total, "error")}, since{" "}
        <a href={link("step", strip.first_step)}>step {strip.first_step}</a>
      </span>
    </li>
  );
}

function StripTable({ series }: { series: StepSeries }) {
  const rows = series.steps
    .map((step, i) => ({ step, counts: series.errors.map((one) => one.counts[i] ?? 0) }))
    .filter((row) => row.counts.some((count) => count > 0));
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Errors by step">
      <table class="table" aria-label="Errors by step">
        <thead>
          <tr>
            <th scope="col">Step</th>
            {series.errors.map((one) => (
              <th scope="col" class="right" key={`${one.name} ${one.kind}`}>
                <Text text={`${one.name}: ${one.kind}`} max={30} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.step}>
              <th scope="row">
                <a href={link("step", row.step)}>{row.step}</a>
              </th>
              {row.counts.map((count, i) => (
                <td class="right" key={i}>
                  {count}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
