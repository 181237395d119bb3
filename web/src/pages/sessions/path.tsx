/** The path of one session: its phases in order, each with its time. */
import type { Overview } from "../../model/answers";
import { duration, visible } from "../../model/format";
import { useAnswer } from "../../state/answer";
import { link } from "../../state/route";
import { Swatch, Text } from "../../views/bits";
import { roleOf } from "../../views/nameshare";

export function Path({ id, overview }: { id: string; overview: Overview }) {
  const { data, error } = useAnswer("session", { session: id }, { follow: false });
  if (!data) return <p class="dim">{error ? error.message : "…"}</p>;
  const spans = data.spans.filter((one) => one.depth === 0).map((one) => one.span);
  if (spans.length === 0) return <p class="dim">No phase was recorded in it.</p>;
  return (
    <ol class="chips" aria-label="Phases in order">
      {spans.map((one) => (
        <li
          key={one.span_id}
          class={one.status === "error" ? "chip failed" : "chip"}
          title={visible(one.reason ?? "").slice(0, 500)}
        >
          <a href={link("session", id, { sel: one.span_id })}>
            <Swatch name={one.name} role={roleOf(overview, one.name)} />{" "}
            <Text text={one.name} max={24} /> {one.detail && <Text text={one.detail} max={20} />}{" "}
            <span class="dim">{duration((one.end_ns ?? data.now_ns) - one.start_ns)}</span>
          </a>
        </li>
      ))}
    </ol>
  );
}
