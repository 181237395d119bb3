/**
 * Where lanes lie on the screen: groups with heads, rows for overlapping spans, pinned lanes on top.
 *
 * Heights are CSS pixels in the coordinates of the scrolled content; `pictureLayout` turns the part
 * in view into device pixels for the painter.
 */

import type { FrameHeader, Lane } from "./frame";
import type { PictureLayout, Strip } from "./picture";
import type { SilhouetteBox } from "./silhouette";
import type { SpanTable } from "./spans";
import { OPEN_DURATION } from "./frame";

export const HEAD_PX = 24;
const SILHOUETTE_PX = 40;
export const LANE_GAP_PX = 2;
/** Row heights from roomy to the least at which a lane can be seen. */
export const ROW_HEIGHTS = [18, 12, 8, 5, 3] as const;

export type LaneSort = "lane" | "start" | "end" | "age" | "name";

export interface LaneOptions {
  readonly collapsed: ReadonlySet<number>;
  /** Ids of lanes. */
  readonly pinned: readonly number[];
  readonly rowHeight: number;
  /** Lanes of each group in the order of the sort; null keeps the frame's order. */
  readonly order: readonly number[] | null;
}

export interface LaneBox {
  readonly lane: number;
  readonly y: number;
  readonly height: number;
}

export interface GroupBox {
  readonly group: number;
  readonly y: number;
  /** The head, and the silhouette under it if the group is collapsed. */
  readonly height: number;
  readonly isCollapsed: boolean;
  readonly lanes: readonly number[];
}

/** Boxes are sorted by y. */
export interface LaneLayout {
  readonly groups: readonly GroupBox[];
  readonly lanes: readonly LaneBox[];
  readonly pinned: readonly LaneBox[];
  readonly pinnedHeight: number;
  readonly height: number;
  readonly rowHeight: number;
}

type Dictionaries = Pick<FrameHeader, "groups" | "lanes" | "order">;

/** Lay out all lanes of a frame. */
export function layoutLanes(header: Dictionaries, options: LaneOptions): LaneLayout {
  const lanes: LaneBox[] = [];
  const groups: GroupBox[] = [];
  const isPinned = new Set(options.pinned);
  const pinnedLanes = header.lanes.flatMap((lane, at) => (isPinned.has(lane.id) ? [at] : []));
  const pinned = stack(pinnedLanes, header.lanes, options.rowHeight, 0);
  const members = lanesByGroup(header, options.order ?? header.order);
  let y = 0;
  header.groups.forEach((_, index) => {
    const isCollapsed = options.collapsed.has(index);
    const height = isCollapsed ? HEAD_PX + SILHOUETTE_PX : HEAD_PX;
    groups.push({ group: index, y, height, isCollapsed, lanes: members[index]! });
    y += height;
    if (!isCollapsed) {
      const shown = members[index]!.filter((lane) => !isPinned.has(header.lanes[lane]!.id));
      const boxes = stack(shown, header.lanes, options.rowHeight, y);
      lanes.push(...boxes);
      y = endOfBoxes(boxes, y);
    }
  });
  const pinnedHeight = pinned.length > 0 ? endOfBoxes(pinned, 0) + LANE_GAP_PX : 0;
  return { groups, lanes, pinned, pinnedHeight, height: y, rowHeight: options.rowHeight };
}

/** Give the first row height at which everything fits into a height, else the least. */
export function fittingRowHeight(header: Dictionaries, height: number): number {
  const rows = header.lanes.reduce((sum, lane) => sum + Math.max(lane.rows, 1), 0);
  const fixed = header.groups.length * HEAD_PX + header.lanes.length * LANE_GAP_PX;
  return ROW_HEIGHTS.find((each) => rows * each + fixed <= height) ?? 3;
}

/** Give the boxes that lie between two heights; the boxes are sorted and do not overlap. */
export function boxesBetween<T extends { readonly y: number; readonly height: number }>(
  boxes: readonly T[],
  top: number,
  bottom: number,
): T[] {
  let low = 0;
  let high = boxes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const box = boxes[middle]!;
    if (box.y + box.height <= top) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const found: T[] = [];
  for (let at = low; at < boxes.length && boxes[at]!.y < bottom; at++) {
    found.push(boxes[at]!);
  }
  return found;
}

/** What the painter draws for a scroll position, in device pixels. */
export function pictureLayout(
  layout: LaneLayout,
  header: Dictionaries,
  scroll: number,
  height: number,
  ratio: number,
): PictureLayout {
  const top = layout.pinnedHeight - scroll;
  const strips: Strip[] = [];
  for (const box of boxesBetween(layout.lanes, scroll, scroll + height)) {
    if (box.y + top + box.height > layout.pinnedHeight) {
      addStrips(strips, box, top, layout.rowHeight, header.lanes, ratio);
    }
  }
  const kept = strips.filter((strip) => strip.y >= Math.round(layout.pinnedHeight * ratio) - 1);
  for (const box of layout.pinned) {
    addStrips(kept, box, 0, layout.rowHeight, header.lanes, ratio);
  }
  const silhouettes = boxesBetween(layout.groups, scroll, scroll + height)
    .filter((box) => box.isCollapsed && box.y + top + HEAD_PX >= layout.pinnedHeight)
    .map((box) => silhouetteOf(box, top, header, ratio));
  return { strips: kept, silhouettes };
}

/** Order lanes for a sort; within a group the frame's order breaks ties. */
export function laneOrder(
  header: Dictionaries,
  table: SpanTable,
  sort: LaneSort,
): readonly number[] | null {
  if (sort === "lane") {
    return null;
  }
  const keys = header.lanes.map((lane, index) => sortKey(table, lane, index, sort));
  return header.lanes
    .map((_, index) => index)
    .sort((a, b) => (keys[a]! < keys[b]! ? -1 : keys[a]! > keys[b]! ? 1 : a - b));
}

function sortKey(table: SpanTable, lane: Lane, index: number, sort: LaneSort): number | string {
  if (sort === "name") {
    return lane.label;
  }
  let first = Infinity;
  let last = -Infinity;
  let oldestOpen = Infinity;
  const at = table.laneFirst[index] ?? 0;
  const end = table.rowFirst[table.laneFirst[index + 1] ?? at] ?? 0;
  for (let span = table.rowFirst[at] ?? 0; span < end; span++) {
    const start = table.start[span]!;
    const isOpen = table.dur[span]! === OPEN_DURATION;
    first = Math.min(first, start);
    last = Math.max(last, isOpen ? Infinity : start + table.dur[span]!);
    oldestOpen = isOpen ? Math.min(oldestOpen, start) : oldestOpen;
  }
  return sort === "start" ? first : sort === "end" ? last : oldestOpen;
}

/** The lanes of each group, from top to bottom. */
export function lanesByGroup(
  header: Dictionaries,
  order: readonly number[] | null | undefined,
): number[][] {
  const members: number[][] = header.groups.map(() => []);
  const add = (lane: number): void => {
    members[header.lanes[lane]?.group ?? -1]?.push(lane);
  };
  if (order) {
    order.forEach(add);
  } else {
    header.lanes.forEach((_, lane) => add(lane));
  }
  return members;
}

function stack(
  members: readonly number[],
  lanes: readonly Lane[],
  rowHeight: number,
  from: number,
): LaneBox[] {
  let y = from;
  return members.map((lane) => {
    const height = Math.max(lanes[lane]?.rows ?? 1, 1) * rowHeight;
    const box = { lane, y, height };
    y += height + LANE_GAP_PX;
    return box;
  });
}

function endOfBoxes(boxes: readonly LaneBox[], from: number): number {
  const last = boxes[boxes.length - 1];
  return last === undefined ? from : last.y + last.height + LANE_GAP_PX;
}

function addStrips(
  into: Strip[],
  box: LaneBox,
  top: number,
  rowHeight: number,
  lanes: readonly Lane[],
  ratio: number,
): void {
  const gap = rowHeight >= 8 ? 1 : 0;
  for (let row = 0; row < Math.max(lanes[box.lane]?.rows ?? 1, 1); row++) {
    const y = Math.round((box.y + top + row * rowHeight) * ratio);
    const end = Math.round((box.y + top + (row + 1) * rowHeight - gap) * ratio);
    into.push({ lane: box.lane, row, y, height: Math.max(end - y, 1) });
  }
}

function silhouetteOf(
  box: GroupBox,
  top: number,
  header: Dictionaries,
  ratio: number,
): SilhouetteBox {
  return {
    group: box.group,
    lanes: box.lanes,
    rowsOf: (lane) => header.lanes[lane]?.rows ?? 1,
    y: Math.round((box.y + HEAD_PX + top) * ratio),
    height: Math.round((SILHOUETTE_PX - LANE_GAP_PX) * ratio),
  };
}
