/** Sessions in flight by the phase they are in, over the last fifteen minutes. */
import { useMemo } from "preact/hooks";
import type { InFlightSeries, Now } from "../../model/answers";
import { grouped } from "../../model/format";
import { tickLabel } from "../../model/logscale";
import { colourVariable } from "../../model/palette";
import { formatRange } from "../../model/route";
import { term } from "../../model/term";
import { link, navigate } from "../../state/route";
import { Swatch, Text } from "../../views/bits";
import { Chart, type Band, type Series } from "../../views/chart";

/** Positions are minutes before now, so that the axis has round ones; seconds in a short run. */
function unitOf(flight: InFlightSeries): number {
  return flight.bin_ns * (flight.counts[0]?.length ?? 0) < 120e9 ? 1e9 : 60e9;
}

/** Sessions that are open and have been in a phase; `other` is no phase. */
function sessionsIn(name: string, isAlive: boolean): string {
  const terms = [name === "other" ? "" : term("phase", name), isAlive ? "status:open" : ""];
  return link("sessions", "", { f: terms.filter(Boolean).join(" ") });
}

export function InFlight({ now, firstNs }: { now: Now; firstNs: number }) {
  const flight = useMemo(() => sinceStart(now.by_phase, firstNs), [now.by_phase, firstNs]);
  const unit = unitOf(flight);
  const xs = useMemo(() => before(flight, now.now_ns, unit), [flight, now.now_ns]);
  const series = useMemo(() => layers(flight), [flight]);
  const bands = useMemo(() => shaded(flight, now.now_ns, unit), [flight, now.now_ns]);
  const open = (name: string): string => sessionsIn(name, now.is_alive);
  return (
    <>
      <Chart
        label="Sessions in flight by phase"
        kind="stack"
        height={180}
        xs={xs}
        xTitle="before now"
        series={series}
        bands={bands}
        formatX={(x) =>
          -x * unit < 1e6 ? (now.is_alive ? "now" : "end") : `−${tickLabel(-x * unit)}`
        }
        formatY={(y) => (Number.isInteger(y) ? grouped(y) : "")}
        onRange={(from, to) => {
          const since = (x: number): number => Math.max(0, (now.now_ns - firstNs + x * unit) / 1e9);
          navigate(link("timeline", "", { t: formatRange({ from: since(from), to: since(to) }) }));
        }}
        onPick={(_, layer) => {
          const name = flight.names[layer];
          if (name !== undefined) navigate(open(name));
        }}
      />
      <ul class="row phases-now">
        {flight.names.map((name, i) => (
          <li key={name}>
            <a href={open(name)}>
              <Swatch name={name} role={flight.roles[i]} /> <Text text={name} max={24} />
            </a>{" "}
            <b>{grouped(flight.counts[i]?.at(-1) ?? 0)}</b>
          </li>
        ))}
        {flight.capacity !== null && (
          <li class="dim">dashed: capacity {grouped(flight.capacity)}</li>
        )}
        {flight.bands.length > 0 && <li class="dim">shaded: {bandKinds(flight).join(" and ")}</li>}
      </ul>
    </>
  );
}

/** Leave out the moments before the run began. */
function sinceStart(flight: InFlightSeries, firstNs: number): InFlightSeries {
  const early = Math.max(0, Math.floor((firstNs - flight.start_ns) / flight.bin_ns));
  return {
    ...flight,
    start_ns: flight.start_ns + early * flight.bin_ns,
    counts: flight.counts.map((one) => one.slice(early)),
  };
}

function before(flight: InFlightSeries, nowNs: number, unit: number): number[] {
  const length = flight.counts[0]?.length ?? 0;
  const first = flight.start_ns - nowNs;
  return Array.from({ length }, (_, i) => (first + i * flight.bin_ns) / unit);
}

function layers(flight: InFlightSeries): Series[] {
  const made: Series[] = flight.names.map((name, i) => ({
    label: name,
    colour: colourVariable(name, flight.roles[i]),
    values: flight.counts[i] ?? [],
  }));
  const { capacity } = flight;
  if (capacity !== null && made.length > 0) {
    const values = made[0]!.values.map(() => capacity);
    made.push({ label: "capacity", colour: "--text", values, isLimit: true });
  }
  return made;
}

function shaded(flight: InFlightSeries, nowNs: number, unit: number): Band[] {
  return flight.bands.map((one) => ({
    from: (one.start_ns - nowNs) / unit,
    to: (one.end_ns - nowNs) / unit,
    label: one.kind,
  }));
}

function bandKinds(flight: InFlightSeries): string[] {
  const words: Record<string, string> = { pause: "pauses", sync: "weight sync" };
  return [...new Set(flight.bands.map((one) => words[one.kind] ?? one.kind))];
}
