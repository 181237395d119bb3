/** How fast records come in, how late, and what was lost on the way. */
import type { Health } from "../../model/answers";
import { bytes, count, duration, grouped, percent, plural, rate } from "../../model/format";
import { Tile } from "../../views/bits";

export function HealthTiles({ health, isFile }: { health: Health; isFile: boolean }) {
  const { ingest, disk, processes } = health;
  const dropped = processes.reduce((sum, one) => sum + one.dropped, 0);
  const missing = processes.reduce((sum, one) => sum + one.missing_frames, 0);
  return (
    <div class="tiles">
      {!isFile && (
        <>
          <Tile
            label="Spans per second"
            value={rate(ingest.spans_per_s)}
            note="ended in the last minute"
          />
          <Tile
            label="Ingest lag"
            value={duration(ingest.lag_ns)}
            note={
              ingest.lag_ns === null
                ? "nobody writes"
                : `${bytes(ingest.unread_bytes)} not read yet`
            }
          />
        </>
      )}
      <Tile
        label="Not sealed yet"
        value={count(ingest.unsealed_spans)}
        note="spans that are only in logs"
      />
      <Tile
        label="Records dropped"
        value={grouped(dropped)}
        note={missing > 0 ? `and ${plural(missing, "frame")} missing` : "no frame is missing"}
        tone={dropped + missing > 0 ? "bad" : "plain"}
      />
      <Tile
        label="Clock spread"
        value={duration(health.clock_spread_ns)}
        note={`over ${plural(Math.max(health.clocks.length, 1), "host")}`}
      />
      <Tile
        label="Disk free"
        value={bytes(disk.free_bytes)}
        note={
          disk.total_bytes > 0
            ? `${percent(disk.free_bytes / disk.total_bytes)} of the disk; the run takes ${bytes(disk.run_bytes)}`
            : `the run takes ${bytes(disk.run_bytes)}`
        }
      />
    </div>
  );
}
