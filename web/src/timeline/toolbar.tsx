/** Buttons and choices of the timeline; everything here has a key as well. */
import type { Metrics } from "../model/answers";
import { grouped, visible } from "../model/format";
import { type LaneSort, ROW_HEIGHTS } from "../model/lanes";
import { setParams } from "../state/route";
import { LANES_PER_TILE, type Loader } from "./loading";
import type { Scene } from "./scene";

export const GROUPINGS = ["host", "replica", "rank", "task", "outcome"] as const;
const SORTS: readonly [LaneSort, string][] = [
  ["lane", "as placed"],
  ["start", "start"],
  ["end", "end"],
  ["age", "age"],
  ["name", "name"],
];
const ZOOM = 1.6;

export interface ToolbarProps {
  scene: Scene;
  loader: Loader;
  by: string;
  metrics: Metrics | null;
  track: string;
}

export function Toolbar({ scene, loader, by, metrics, track }: ToolbarProps) {
  return (
    <div class="tl-toolbar row" role="toolbar" aria-label="Timeline">
      <Choice
        label="Lanes by"
        value={by}
        options={GROUPINGS.map((one) => [one, one])}
        onPick={(value) => {
          setParams({ by: value === "host" ? null : value });
        }}
      />
      <Choice
        label="Sort"
        value={scene.sort.value}
        options={SORTS}
        onPick={(value) => {
          scene.sort.value = value as LaneSort;
        }}
      />
      <Choice
        label="Rows"
        value={String(scene.rowHeight.value ?? "auto")}
        options={[["auto", "to fit"], ...ROW_HEIGHTS.map(rowOption)]}
        onPick={(value) => {
          scene.rowHeight.value = value === "auto" ? null : Number(value);
        }}
      />
      {metrics !== null && metrics.metrics.length > 0 && (
        <Choice
          label="Track"
          value={track}
          options={[["", "none"], ...metrics.metrics.map((one) => pairOf(one.name))]}
          onPick={(value) => {
            setParams({ track: value || null }, { replace: true });
          }}
        />
      )}
      <span class="row" role="group" aria-label="View">
        <Tool title="Zoom in (W)" text="+" run={() => scene.zoom(ZOOM)} />
        <Tool title="Zoom out (S)" text="−" run={() => scene.zoom(1 / ZOOM)} />
        <Tool title="Fit the selection (F)" text="Fit" run={() => scene.fit()} />
        <Tool title="All of the run (0)" text="All" run={() => scene.reset()} />
        <button
          aria-pressed={scene.isMeasuring.value}
          title="Measure (M)"
          onClick={() => {
            scene.isMeasuring.value = !scene.isMeasuring.value;
          }}
        >
          Measure
        </button>
        <button
          aria-pressed={scene.isTable.value}
          title="Table of what is in view (L)"
          onClick={() => {
            scene.isTable.value = !scene.isTable.value;
          }}
        >
          Table
        </button>
        <FoldButton scene={scene} />
      </span>
      <LanePager scene={scene} loader={loader} />
      <FollowPill scene={scene} loader={loader} />
    </div>
  );
}

function rowOption(height: number): [string, string] {
  return [String(height), `${height} px`];
}

function pairOf(name: string): [string, string] {
  return [name, visible(name)];
}

function Tool({ title, text, run }: { title: string; text: string; run: () => void }) {
  return (
    <button title={title} aria-label={title} onClick={run}>
      {text}
    </button>
  );
}

function FoldButton({ scene }: { scene: Scene }) {
  const groups = scene.data.value?.header.groups.length ?? 0;
  const isFolded = groups > 0 && scene.collapsed.value.size === groups;
  return (
    <button
      onClick={() => {
        const all = Array.from({ length: groups }, (_, index) => index);
        scene.collapsed.value = new Set(isFolded ? [] : all);
      }}
    >
      {isFolded ? "Unfold all" : "Fold all"}
    </button>
  );
}

/** Turns pages of lanes, where a tile cannot hold them all. */
function LanePager({ scene, loader }: { scene: Scene; loader: Loader }) {
  const header = scene.data.value?.header;
  const first = loader.firstLane.value;
  if (!header || !loader.state.value.isTiled || header.total_lanes <= LANES_PER_TILE) {
    return null;
  }
  const last = Math.min(first + LANES_PER_TILE, header.total_lanes);
  return (
    <span class="row" role="group" aria-label="Lanes shown">
      <button disabled={first === 0} onClick={() => loader.turnTo(first - LANES_PER_TILE)}>
        Lanes above
      </button>
      <span class="dim">
        {grouped(first + 1)} to {grouped(last)} of {grouped(header.total_lanes)}
      </span>
      <button
        disabled={last === header.total_lanes}
        onClick={() => loader.turnTo(first + LANES_PER_TILE)}
      >
        Lanes below
      </button>
    </span>
  );
}

/** While the run lives: following, or standing still with a way back. */
function FollowPill({ scene, loader }: { scene: Scene; loader: Loader }) {
  void scene.growth.value;
  if (!scene.isAlive()) {
    return null;
  }
  if (scene.isFollowing.value) {
    return <span class="badge good tl-pill">Following</span>;
  }
  return (
    <button
      class="tl-pill"
      onClick={() => {
        loader.unseen.value = 0;
        scene.follow();
      }}
    >
      Paused, {grouped(loader.unseen.value)} new
    </button>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  options: readonly (readonly [string, string])[];
  onPick: (value: string) => void;
}

function Choice({ label, value, options, onPick }: ChoiceProps) {
  return (
    <label class="tl-choice">
      <span class="dim">{label}</span>{" "}
      <select
        value={value}
        onChange={(event) => {
          onPick(event.currentTarget.value);
        }}
      >
        {options.map(([id, text]) => (
          <option key={id} value={id}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
