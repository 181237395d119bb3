/** A whole split by cause: a bar, and under it each part with its time and share as text. */
import { duration, percent } from "../model/format";

export interface Share {
  label: string;
  value: number;
  /** A custom property of the style sheet. */
  colour: string;
  texture?: "hatched" | "dotted";
  href?: string;
  hint?: string;
}

export interface SplitBarProps {
  /** Names the whole, such as "Trainer". */
  label: string;
  shares: readonly Share[];
  total: number;
  format?: (value: number) => string;
}

export function SplitBar({ label, shares, total, format = duration }: SplitBarProps) {
  const present = shares.filter((one) => one.value > 0);
  return (
    <div class="split" role="group" aria-label={label}>
      <div class="split-bar" aria-hidden="true">
        {total > 0 &&
          present.map((one) => (
            <i
              key={one.label}
              class={one.texture ?? ""}
              style={{
                width: `${(one.value / total) * 100}%`,
                backgroundColor: `var(${one.colour})`,
              }}
            />
          ))}
      </div>
      <ul class="split-list">
        {present.map((one) => (
          <li key={one.label} title={one.hint}>
            <i
              class={`swatch ${one.texture ?? ""}`}
              style={{ backgroundColor: `var(${one.colour})` }}
              aria-hidden="true"
            />{" "}
            {one.href ? <a href={one.href}>{one.label}</a> : one.label}{" "}
            <span class="dim">
              {format(one.value)}
              {total > 0 && `, ${percent(one.value / total)}`}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}
