/** Small parts of pages: badges, tiles, sparklines, bars, times. */
import type { ComponentChildren } from "preact";
import { clock, duration, moment, percent, visible } from "../model/format";
import { colourVariable } from "../model/palette";

export type Tone = "plain" | "good" | "warn" | "bad";

/** A word with a colour and, so that colour is not all, a sign. */
export function Badge(props: { tone?: Tone; title?: string; children: ComponentChildren }) {
  const tone = props.tone ?? "plain";
  const sign = { plain: "", good: "✓ ", warn: "▲ ", bad: "✕ " }[tone];
  return (
    <span class={`badge ${tone}`} title={props.title}>
      {sign && <span aria-hidden="true">{sign}</span>}
      {props.children}
    </span>
  );
}

const OUTCOME_TONES: Record<string, Tone> = {
  accepted: "good",
  ok: "good",
  rejected: "warn",
  dropped: "warn",
  cancelled: "warn",
  failed: "bad",
  timeout: "bad",
  error: "bad",
  lost: "bad",
};

export function Outcome({ outcome, reason }: { outcome: string | null; reason?: string | null }) {
  if (outcome === null || outcome === "none") return <span class="dim">none yet</span>;
  return (
    <span class="nowrap">
      <Badge tone={OUTCOME_TONES[outcome] ?? "plain"}>{outcome}</Badge>
      {reason && reason !== outcome && <span class="dim"> {visible(reason)}</span>}
    </span>
  );
}

/** Recorded text: control characters made visible, cut to a length, whole on hover. */
export function Text({ text, max = 80 }: { text: string | null | undefined; max?: number }) {
  if (!text) return <span class="dim">–</span>;
  const shown = visible(text);
  if (shown.length <= max) return <bdi>{shown}</bdi>;
  return (
    <bdi title={shown.slice(0, 2000)}>
      {shown.slice(0, max)}
      <span aria-label=" (cut)">…</span>
    </bdi>
  );
}

const MOST_TEXT = 2000;

/**
 * A sentence of ours: names in it that stand in backticks are drawn as such. One that is longer than
 * there is room for on a wide screen is shown whole on a narrow one, which cannot be hovered.
 */
export function Sentence({ text, max = 400 }: { text: string; max?: number }) {
  const shown = visible(text);
  if (shown.length <= max) return <bdi>{marked(shown)}</bdi>;
  const before = shown.slice(0, max);
  // Not within what stands in code marks, which both halves would then lack one of.
  const at = before.split("`").length % 2 ? max : before.lastIndexOf("`");
  return (
    <bdi class="cut" title={shown}>
      {marked(shown.slice(0, at))}
      <span class="rest">{marked(shown.slice(at, MOST_TEXT))}</span>
    </bdi>
  );
}

function marked(text: string): ComponentChildren[] {
  return text.split(/`([^`]+)`/).map((one, i) => (i % 2 ? <code key={i}>{one}</code> : one));
}

export function Time({ ns, withMillis }: { ns: number | null; withMillis?: boolean }) {
  if (ns === null) return <span class="dim">–</span>;
  return <time title={moment(ns)}>{clock(ns, withMillis)}</time>;
}

export function Swatch({ name, role }: { name: string; role?: string | null | undefined }) {
  const colour = colourVariable(name, role);
  return (
    <i
      class={`swatch ${colour.slice(2)}`}
      style={{ background: `var(${colour})` }}
      aria-hidden="true"
    />
  );
}

/** A figure that leads the page, with its history and where it comes from. */
export function Tile(props: {
  label: string;
  value: ComponentChildren;
  note?: ComponentChildren;
  href?: string | undefined;
  spark?: readonly (number | null)[];
  tone?: Tone;
}) {
  const body = (
    <>
      <span class="tile-label">{props.label}</span>
      <span class="tile-value">{props.value}</span>
      <span class="tile-note dim">{props.note}</span>
      {props.spark && <Spark values={props.spark} />}
    </>
  );
  const kind = `tile ${props.tone ?? ""}`;
  return props.href ? (
    <a class={kind} href={props.href}>
      {body}
    </a>
  ) : (
    <div class={kind}>{body}</div>
  );
}

/** A line of recent values, without axes; its figures are the tile's. */
export function Spark({ values }: { values: readonly (number | null)[] }) {
  const known = values.filter((one): one is number => one !== null);
  if (known.length < 2) return <svg class="spark" aria-hidden="true" />;
  const high = Math.max(...known, 1e-9);
  const width = values.length - 1;
  let path = "";
  values.forEach((value, i) => {
    if (value === null) return;
    path += `${path === "" || values[i - 1] === null ? "M" : "L"}${i} ${(1 - value / high) * 20 + 1}`;
  });
  return (
    <svg class="spark" viewBox={`0 0 ${width} 22`} preserveAspectRatio="none" aria-hidden="true">
      <path d={path} vector-effect="non-scaling-stroke" />
    </svg>
  );
}

export interface Part {
  label: string;
  value: number;
  role?: string | null;
  href?: string;
}

/** Parts that make up a whole, side by side; what is under a pixel is still in the table. */
export function StackBar(props: {
  label: string;
  parts: readonly Part[];
  /** What the parts add up to; their sum if not given. */
  total?: number;
  format?: (value: number) => string;
}) {
  const format = props.format ?? duration;
  const total = props.total ?? props.parts.reduce((sum, one) => sum + one.value, 0);
  const text = props.parts
    .filter((one) => one.value > 0)
    .map((one) => `${visible(one.label)} ${format(one.value)}`)
    .join(", ");
  return (
    <span class="stackbar" role="img" aria-label={`${props.label}: ${text || "nothing"}`}>
      {total > 0 &&
        props.parts.map((one) => {
          const colour = colourVariable(one.label, one.role);
          return (
            <i
              key={one.label}
              class={colour.slice(2)}
              title={`${visible(one.label)}: ${format(one.value)} (${percent(one.value / total)})`}
              style={{
                width: `${(one.value / total) * 100}%`,
                background: `var(${colour})`,
              }}
            />
          );
        })}
    </span>
  );
}
