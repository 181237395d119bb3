/**
 * Loading: the tile of the view first, then the whole run if it is small enough, then deltas.
 *
 * A run of more than a million spans stays on tiles: snapped to powers of two, kept while there is
 * room, the old one shown until the new one lands, requests that nobody waits for cancelled.
 */

import { signal } from "../state/signals";
import { applyDelta, liveTables, type LiveTables, tablesOf } from "../model/deltas";
import { farSilhouettesOf } from "../model/farsilhouettes";
import { decodeFrame, type Frame } from "../model/frame";
import { snapWindow, type TimeWindow } from "../model/scale";
import { type Source, SourceError } from "../model/source";
import { tableOf } from "../model/spans";
import { bytesPerMs } from "./linkspeed";
import { lanesNear } from "./nearby";
import { firstCollapsed, type Scene } from "./scene";

/** Runs up to this size are held in the page as a whole. */
export const MOST_WHOLE_SPANS = 1_200_000;
/** A page of lanes; where there are more, the reader turns pages. */
export const LANES_PER_TILE = 1024;
const OVERVIEW_PX = 1000;
const MOST_TILES = 24;
const TOO_LARGE = 413;
const TILE_DELAY_MS = 80;
const DELTA_GAP_MS = 250;
/** From here on a link is fast enough for columns as they are: packing takes both sides a second. */
const FAST_BYTES_PER_MS = 10_000;

export interface LoadState {
  readonly isLoading: boolean;
  readonly error: SourceError | null;
  /** Whether pictures come from the server's tiles. */
  readonly isTiled: boolean;
}

export class Loader {
  readonly state = signal<LoadState>({ isLoading: true, error: null, isTiled: false });
  /** Spans that came while the reader stood still. */
  readonly unseen = signal(0);

  /** Position of the first lane of a tile. */
  readonly firstLane = signal(0);

  private live: LiveTables | null = null;
  private readonly tiles = new Map<string, Frame>();
  private shownTile = "";
  private abort = new AbortController();
  private tileAbort: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private lastDelta = 0;

  constructor(
    private readonly scene: Scene,
    private readonly source: Source,
    private readonly run: string,
    private readonly by: string,
    private readonly spans: number,
  ) {}

  /** Load what the view needs; a report has no tiles to ask for. */
  async start(): Promise<void> {
    try {
      if (this.source.isLive) {
        await this.loadTile(this.scene.window.peek());
      }
      if (this.source.isLive && this.spans > MOST_WHOLE_SPANS) {
        this.stayOnTiles();
      } else {
        await this.loadWhole();
      }
    } catch (error) {
      if (error instanceof SourceError && error.status === TOO_LARGE) {
        this.stayOnTiles();
      } else {
        this.fail(error);
      }
    }
  }

  private stayOnTiles(): void {
    this.state.value = { isLoading: false, error: null, isTiled: true };
    this.windowChanged(this.scene.window.peek());
  }

  stop(): void {
    clearTimeout(this.timer);
    this.abort.abort();
    this.tileAbort?.abort();
  }

  /** Show other lanes of a run that has too many for one tile. */
  turnTo(firstLane: number): void {
    this.firstLane.value = Math.max(firstLane, 0);
    this.scene.collapsed.value = new Set();
    this.loadTile(this.scene.window.peek()).catch((error: unknown) => this.fail(error));
  }

  /** The view has moved, in time or to other lanes: a tiled timeline needs another tile. */
  windowChanged(window: TimeWindow): void {
    if (this.live !== null || !this.state.peek().isTiled) {
      return;
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.loadTile(window).catch((error: unknown) => this.fail(error));
    }, TILE_DELAY_MS);
  }

  /** The run has come further: fetch what is new, four times a second at most. */
  progressed(isStandingStill: boolean): void {
    if (this.state.peek().error?.status === 0) {
      // The server was away while something was loaded, and is back.
      this.state.value = { ...this.state.peek(), isLoading: true, error: null };
      void this.start();
      return;
    }
    if (this.timer !== undefined && this.live !== null) {
      return;
    }
    if (this.live === null) {
      if (this.state.peek().isTiled && !isStandingStill) {
        this.tiles.clear();
        this.shownTile = "";
        this.windowChanged(this.scene.window.peek());
      }
      return;
    }
    const wait = Math.max(this.lastDelta + DELTA_GAP_MS - performance.now(), 0);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.lastDelta = performance.now();
      this.loadDelta().catch((error: unknown) => this.recover(error));
    }, wait);
  }

  private async loadTile(window: TimeWindow): Promise<void> {
    const whole = { t0: 0, t1: this.scene.lastNs.peek() };
    const snapped = snapWindow(window, whole);
    const width = Math.max(Math.round(this.scene.size.peek().width || 1200), 200);
    const share = (snapped.t1 - snapped.t0) / Math.max(window.t1 - window.t0, 1);
    const pixels = Math.min(Math.ceil(width * Math.max(share, 1)), 4096);
    const only = lanesNear(this.scene, this.firstLane.peek());
    const key = `${this.firstLane.peek()} ${only} ${snapped.t0} ${snapped.t1} ${pixels}`;
    if (key === this.shownTile) {
      return;
    }
    this.tileAbort?.abort();
    const abort = new AbortController();
    this.tileAbort = abort;
    const frame =
      this.tiles.get(key) ?? (await this.fetchTile(snapped, pixels, only, abort.signal));
    if (abort.signal.aborted || this.live !== null) {
      return;
    }
    this.remember(key, frame);
    this.shownTile = key;
    this.show(frame);
  }

  private async fetchTile(
    window: TimeWindow,
    width: number,
    only: string,
    abort: AbortSignal,
  ): Promise<Frame> {
    const bytes = await this.source.binary(
      this.run,
      "tile",
      {
        by: this.by,
        t0: this.absolute(window.t0),
        t1: this.absolute(window.t1),
        width,
        first: this.firstLane.peek(),
        lanes: LANES_PER_TILE,
        only,
        silhouettes: 1,
        overview: OVERVIEW_PX,
      },
      abort,
    );
    return decodeFrame(bytes);
  }

  private async loadWhole(): Promise<void> {
    const isFast = this.source.isLive && bytesPerMs("/tile?") >= FAST_BYTES_PER_MS;
    const mode = isFast ? "raw" : "packed";
    const bytes = await this.source.binary(
      this.run,
      "frame",
      { by: this.by, mode },
      this.abort.signal,
    );
    const frame = await decodeFrame(bytes);
    if (frame.columns.has("cell_lane")) {
      this.show(frame);
    } else {
      this.live = liveTables(frame, this.scene.baseNs);
      this.showLive(frame);
    }
    this.state.value = { isLoading: false, error: null, isTiled: false };
  }

  private async loadDelta(): Promise<void> {
    const live = this.live;
    if (live === null) {
      return;
    }
    const bytes = await this.source.binary(
      this.run,
      "delta",
      { by: this.by, since: live.header.seq },
      this.abort.signal,
    );
    const delta = await decodeFrame(bytes);
    this.live = applyDelta(live, delta, this.scene.baseNs);
    if (!this.scene.isFollowing.peek()) {
      this.unseen.value += delta.header.rows;
    }
    this.showLive(delta);
  }

  /** A delta that cannot be had means that everything is loaded anew. */
  private recover(error: unknown): void {
    if (this.abort.signal.aborted || (error instanceof SourceError && error.status === 0)) {
      return;
    }
    this.loadWhole().catch((again: unknown) => this.fail(again));
  }

  private showLive(frame: Frame): void {
    const live = this.live;
    if (live === null) {
      return;
    }
    this.learn(frame);
    this.scene.data.value = {
      header: live.header,
      tables: tablesOf(live),
      sessionIds: live.sessionIds,
      isWhole: true,
      far: null,
      frame,
    };
  }

  private show(frame: Frame): void {
    this.learn(frame);
    this.scene.data.value = {
      header: frame.header,
      tables: [tableOf(frame, this.scene.baseNs)],
      sessionIds: (frame.columns.get("session_ids") as Uint32Array) ?? new Uint32Array(0),
      isWhole: false,
      far: farSilhouettesOf(frame, this.scene.baseNs),
      frame,
    };
  }

  private learn({ header }: Frame): void {
    const { scene } = this;
    if (scene.data.peek() === null) {
      scene.collapsed.value = firstCollapsed(header, scene.size.peek().height || 600);
    }
    if (header.kind === "raw" || header.kind === "packed" || header.kind === "delta") {
      const last = Number(BigInt(header.t1_ns) - scene.baseNs);
      scene.lastNs.value = Math.max(scene.lastNs.peek(), last);
    }
  }

  private remember(key: string, frame: Frame): void {
    this.tiles.delete(key);
    this.tiles.set(key, frame);
    const oldest = this.tiles.keys().next().value;
    if (this.tiles.size > MOST_TILES && oldest !== undefined) {
      this.tiles.delete(oldest);
    }
  }

  private fail(error: unknown): void {
    if (
      this.abort.signal.aborted ||
      (error instanceof DOMException && error.name === "AbortError")
    ) {
      return;
    }
    const told =
      error instanceof SourceError
        ? error
        : new SourceError(error instanceof Error ? error.message : "Loading failed.", "", 500);
    this.state.value = { ...this.state.peek(), isLoading: false, error: told };
  }

  private absolute(time: number): string {
    return String(this.scene.baseNs + BigInt(Math.round(time)));
  }
}
