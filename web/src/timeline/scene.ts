/**
 * The state of one timeline: what is loaded, what is in view, what is picked.
 *
 * Signals, so that drawing and the small DOM parts follow what they read; nothing here draws or
 * loads. All times are nanoseconds since the run's first moment.
 */

import { computed, type ReadonlySignal, type Signal, signal } from "../state/signals";
import type { FarSilhouettes } from "../model/farsilhouettes";
import type { Frame, FrameHeader } from "../model/frame";
import type { SpanRef } from "../model/hit";
import { fittingRowHeight, laneOrder, layoutLanes, type LaneLayout } from "../model/lanes";
import type { LaneSort } from "../model/lanes";
import type { SpanTable } from "../model/spans";
import { fitAround, keepNear, panBy, type TimeWindow, zoomAt } from "../model/scale";
import { endNs, startNs } from "../model/hit";
import { nowNs } from "../state/live";
import { idOf } from "../model/deltas";

/** What has come from the source. */
export interface SceneData {
  readonly header: FrameHeader;
  /** The load, and what has come since; the painter takes at most these two. */
  readonly tables: readonly SpanTable[];
  /** Ids of sessions as pairs of words, low first. */
  readonly sessionIds: Uint32Array;
  /** Whether every span of the run is here, so that sums can be made in the page. */
  readonly isWhole: boolean;
  /** Silhouettes of groups whose spans are not here; null where every span is. */
  readonly far: FarSilhouettes | null;
  readonly frame: Frame;
}

/** A box that was drawn by hand. */
export interface Area extends TimeWindow {
  readonly lanes: readonly number[];
  readonly isDone: boolean;
}

const FEW_SCREENS = 6;

export class Scene {
  readonly data: Signal<SceneData | null> = signal(null);
  readonly window: Signal<TimeWindow>;
  readonly scroll = signal(0);
  readonly size = signal({ width: 0, height: 0 });
  readonly collapsed = signal<ReadonlySet<number>>(new Set());
  readonly pinned = signal<readonly number[]>([]);
  readonly sort = signal<LaneSort>("lane");
  /** Null: as large as fits. */
  readonly rowHeight = signal<number | null>(null);
  readonly hovered = signal<SpanRef | null>(null);
  readonly selected = signal<SpanRef | null>(null);
  readonly area = signal<Area | null>(null);
  readonly measured = signal<TimeWindow | null>(null);
  readonly isMeasuring = signal(false);
  /** Whether what is in view stands below as tables too. */
  readonly isTable = signal(false);
  readonly isFollowing = signal(false);
  /** Counts up while open spans grow. */
  readonly growth = signal(0);
  /** The last moment that anything is known of. */
  readonly lastNs: Signal<number>;
  readonly layout: ReadonlySignal<LaneLayout | null>;

  constructor(
    /** The run's first moment. */
    readonly baseNs: bigint,
    lastNs: number,
    readonly isAlive: () => boolean,
  ) {
    this.lastNs = signal(Math.max(lastNs, 1));
    this.window = signal(this.whole());
    this.layout = computed(() => this.makeLayout());
  }

  /** From the first moment to now, with a little room. */
  whole(): TimeWindow {
    return { t0: 0, t1: Math.max(this.now(), 1) * 1.01 };
  }

  /** Where open spans end: the server's clock while the run lives, else the last thing heard. */
  now(): number {
    const last = this.lastNs.peek();
    return this.isAlive() ? Math.max(nowNs() - Number(this.baseNs), last) : last;
  }

  zoom(factor: number, anchor?: number): void {
    const window = this.window.peek();
    const at = anchor ?? (window.t0 + window.t1) / 2;
    this.move(zoomAt(window, at, factor, this.whole()));
  }

  pan(share: number): void {
    this.move(panBy(this.window.peek(), share, this.whole()));
  }

  /** Show a window on the reader's wish: the timeline stops following the run. */
  move(window: TimeWindow): void {
    this.isFollowing.value = false;
    this.window.value = keepNear(window, this.whole());
  }

  /** Show the picked span, area, or everything. */
  fit(): void {
    const area = this.area.peek();
    const picked = this.selected.peek();
    if (area) {
      this.move(fitAround(area.t0, area.t1, this.whole()));
    } else if (picked) {
      this.move(fitAround(startNs(picked), endNs(picked, this.now()), this.whole()));
    } else {
      this.reset();
    }
  }

  reset(): void {
    this.window.value = this.whole();
    this.isFollowing.value = this.isAlive();
  }

  /** Go with the run: its newest moment stays at the right edge. */
  follow(): void {
    const { t0, t1 } = this.window.peek();
    this.isFollowing.value = true;
    const length = t1 - t0;
    this.window.value = { t0: this.now() + length * 0.02 - length, t1: this.now() + length * 0.02 };
  }

  /** Called now and then while the run lives: open spans grow, a followed window moves on. */
  grow(): void {
    this.growth.value += 1;
    if (!this.isFollowing.peek()) {
      return;
    }
    if (this.window.peek().t0 <= 0) {
      this.window.value = this.whole();
    } else {
      this.follow();
    }
  }

  toggleGroup(group: number): void {
    const next = new Set(this.collapsed.peek());
    if (!next.delete(group)) {
      next.add(group);
    }
    this.collapsed.value = next;
  }

  togglePin(lane: number): void {
    const now = this.pinned.peek();
    this.pinned.value = now.includes(lane) ? now.filter((one) => one !== lane) : [...now, lane];
  }

  /** The id of a span's session as the server writes it; null if it is in none. */
  sessionOf({ table, index }: SpanRef): string | null {
    const ids = this.data.peek()?.sessionIds;
    const session = table.session[index]!;
    if (ids === undefined || session * 2 + 1 >= ids.length) {
      return null;
    }
    return idOf(ids, session);
  }

  /** The id of a span's lane, which is the same in all frames. */
  laneIdOf({ table, index }: SpanRef): number {
    return this.data.peek()?.header.lanes[table.lane[index]!]?.id ?? -1;
  }

  nameOf({ table, index }: SpanRef): string {
    return this.data.peek()?.header.names[table.name[index]!] ?? "?";
  }

  private makeLayout(): LaneLayout | null {
    const data = this.data.value;
    const { height } = this.size.value;
    if (data === null || height === 0) {
      return null;
    }
    const { header, tables } = data;
    const rowHeight = this.rowHeight.value ?? fittingRowHeight(header, height * 1.5);
    const order =
      tables[0] && this.sort.value !== "lane"
        ? laneOrder(header, tables[0], this.sort.value)
        : null;
    return layoutLanes(header, {
      collapsed: this.collapsed.value,
      pinned: this.pinned.value,
      rowHeight,
      order,
    });
  }
}

/** Groups to collapse at first: all, where even the flattest lanes would fill many screens. */
export function firstCollapsed(header: FrameHeader, height: number): ReadonlySet<number> {
  const rows = header.lanes.reduce((sum, lane) => sum + Math.max(lane.rows, 1), 0);
  const isTall = rows * 3 > height * FEW_SCREENS && header.groups.length > 1;
  const few = header.groups.length <= 64;
  return new Set(isTall && few ? header.groups.map((_, index) => index) : []);
}
