/** Heads of groups and lanes: DOM over the canvas, only those in view. */
import { plural, visible } from "../model/format";
import { FLAG, type FrameHeader } from "../model/frame";
import { boxesBetween, type GroupBox, HEAD_PX, type LaneBox } from "../model/lanes";
import type { Scene } from "./scene";

const LEAST_LABEL_PX = 12;

export function Heads({ scene }: { scene: Scene }) {
  const layout = scene.layout.value;
  const data = scene.data.value;
  const scroll = scene.scroll.value;
  const { height } = scene.size.value;
  if (layout === null || data === null) {
    return null;
  }
  const top = layout.pinnedHeight - scroll;
  const room = height - layout.pinnedHeight;
  return (
    <div class="tl-heads">
      {layout.pinned.map((box) => (
        <LaneHead key={`p${box.lane}`} box={box} top={0} scene={scene} header={data.header} />
      ))}
      <div class="tl-heads-scrolled" style={{ clipPath: `inset(${layout.pinnedHeight}px 0 0 0)` }}>
        {boxesBetween(layout.groups, scroll, scroll + room).map((box) => (
          <GroupHead key={`g${box.group}`} box={box} top={top} scene={scene} header={data.header} />
        ))}
        {boxesBetween(layout.lanes, scroll, scroll + room).map((box) => (
          <LaneHead key={`l${box.lane}`} box={box} top={top} scene={scene} header={data.header} />
        ))}
      </div>
    </div>
  );
}

interface HeadProps<T> {
  box: T;
  top: number;
  scene: Scene;
  header: FrameHeader;
}

function GroupHead({ box, top, scene, header }: HeadProps<GroupBox>) {
  const group = header.groups[box.group];
  const label = visible(group?.label ?? "");
  const flags = box.lanes.reduce((all, lane) => all | (header.lanes[lane]?.flags ?? 0), 0);
  return (
    <button
      class="tl-group"
      style={{ top: `${box.y + top}px`, height: `${HEAD_PX}px` }}
      aria-expanded={!box.isCollapsed}
      onClick={() => {
        scene.toggleGroup(box.group);
      }}
    >
      <span aria-hidden="true">{box.isCollapsed ? "▸" : "▾"}</span> <b>{label || "–"}</b>{" "}
      <span class="dim">
        {plural(group?.lanes ?? 0, "lane")}
        {wordsOf(flags)}
      </span>
    </button>
  );
}

/** What a group or lane holds that must not be overlooked. */
function wordsOf(flags: number): string {
  const words = [
    flags & FLAG.stuck ? "stuck" : "",
    flags & FLAG.lost ? "lost" : "",
    flags & FLAG.error ? "errors" : "",
  ].filter(Boolean);
  return words.length > 0 ? ` · ${words.join(", ")}` : "";
}

function LaneHead({ box, top, scene, header }: HeadProps<LaneBox>) {
  if (box.height < LEAST_LABEL_PX) {
    return null;
  }
  const label = visible(header.lanes[box.lane]?.label ?? "");
  const isPinned = scene.pinned.value.includes(header.lanes[box.lane]?.id ?? -1);
  return (
    <span
      class={`tl-lane ${isPinned ? "pinned" : ""}`}
      style={{ top: `${box.y + top}px`, height: `${box.height}px` }}
      title={label}
    >
      {isPinned ? `⊤ ${label}` : label}
    </span>
  );
}
