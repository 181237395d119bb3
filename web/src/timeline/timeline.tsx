/**
 * The timeline: three layers (spans, overlay, DOM) over one scene, loaded and kept alive here.
 *
 * Drawing stays outside the virtual DOM: effects note what changed, and one picture is painted with
 * the next frame of the screen.
 */
import { effect } from "../state/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { CriticalPath, Metrics, Overview, Series } from "../model/answers";
import { count } from "../model/format";
import { formatRange, parseRange } from "../model/route";
import { useKeys } from "../state/keys";
import { isAlive, isPaused, progress } from "../state/live";
import { param, runName, setParams } from "../state/route";
import { asOf } from "../state/selection";
import { source } from "../state/source";
import { shownTheme } from "../state/theme";
import { Failure, Skeleton } from "../views/panel";
import { AreaDrawer } from "./areadrawer";
import { BaseLayer } from "./base";
import { Gestures } from "./gestures";
import { Heads } from "./heads";
import { markHits } from "./hits";
import { timelineKeys } from "./keys";
import { Loader } from "./loading";
import { Minimap } from "./minimap";
import { MomentLine } from "./moment";
import { paintOverlay } from "./overlay";
import { placePath } from "./path";
import { Scene } from "./scene";
import { SpanDrawer } from "./spandrawer";
import { Spoken } from "./spantable";
import { Toolbar } from "./toolbar";
import { Tooltip } from "./tooltip";
import { Tracks } from "./tracks";
import { ViewTables } from "./viewtables";

const GROW_MS = 200;
const LINK_MS = 400;

export interface TimelineProps {
  overview: Overview;
  by: string;
  /** Of the step whose critical path is drawn. */
  path: CriticalPath | null;
  metrics: Metrics | null;
  metric: Series | null;
  /** Ids of the sessions that match the filter; null without one. */
  hits: readonly string[] | null;
}

export function Timeline({ overview, by, path, metrics, metric, hits }: TimelineProps) {
  const { scene, loader } = useMemo(() => begin(overview, by), [by]);
  const keys = useMemo(() => timelineKeys(scene), [scene]);
  useKeys(keys.keys, [scene]);
  useEffect(() => keys.stop, [keys]);
  useLoading(scene, loader);
  useEffect(
    () =>
      effect(() => {
        markHits(scene.data.value, hits);
        scene.growth.value = scene.growth.peek() + 1;
      }),
    [scene, hits],
  );
  const state = loader.state.value;
  const data = scene.data.value;
  return (
    <div class="tl">
      <Toolbar
        scene={scene}
        loader={loader}
        by={by}
        metrics={metrics}
        track={metric?.name ?? param("track")}
      />
      {state.error && <Failure title="timeline" error={state.error} />}
      {state.isTiled && (
        <p class="dim tl-note">{count(overview.spans)} spans: drawn from the server.</p>
      )}
      {data === null && !state.error && <Skeleton />}
      <Minimap scene={scene} />
      <Tracks scene={scene} metric={metric} />
      <Lanes scene={scene} path={path} />
      <MomentLine scene={scene} />
      {scene.isTable.value && <ViewTables scene={scene} metric={metric} />}
      <Spoken scene={scene} />
      <Tooltip scene={scene} />
      {scene.area.value?.isDone ? (
        <AreaDrawer scene={scene} by={by} area={scene.area.value} />
      ) : (
        scene.selected.value && <SpanDrawer scene={scene} by={by} span={scene.selected.value} />
      )}
    </div>
  );
}

/** Make the state of a timeline; the link says which window is shown first. */
function begin(overview: Overview, by: string): { scene: Scene; loader: Loader } {
  const base = BigInt(overview.first_ns);
  const last = overview.last_ns - overview.first_ns;
  const scene = new Scene(
    base,
    last,
    () => isAlive.peek() || (overview.is_alive && !progress.peek()),
  );
  const range = parseRange(param("t"));
  scene.isFollowing.value = overview.is_alive && range === null;
  if (range) {
    scene.window.value = { t0: range.from * 1e9, t1: range.to * 1e9 };
  }
  const loader = new Loader(scene, source(), runName.peek(), by, overview.spans);
  return { scene, loader };
}

/** Load, follow the run, and keep the window in the link. */
function useLoading(scene: Scene, loader: Loader): void {
  // Other effects end only after the next page is painted, whose link would then be written to.
  useLayoutEffect(() => {
    let isStarted = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stops = [
      effect(() => {
        if (scene.size.value.width > 0 && !isStarted) {
          isStarted = true;
          void loader.start();
        }
      }),
      effect(() => {
        const window = scene.window.value;
        loader.windowChanged(window);
        clearTimeout(timer);
        timer = setTimeout(() => keepInLink(scene), LINK_MS);
      }),
      effect(() => {
        void [scene.scroll.value, scene.layout.value];
        loader.windowChanged(scene.window.peek());
      }),
      effect(() => {
        const seq = progress.value?.seq;
        if (seq !== undefined && !isPaused.value) {
          loader.progressed(!scene.isFollowing.peek());
        }
      }),
    ];
    const growing = setInterval(() => {
      if (scene.isAlive() && !isPaused.peek() && !document.hidden) scene.grow();
    }, GROW_MS);
    return () => {
      stops.forEach((stop) => {
        stop();
      });
      clearInterval(growing);
      clearTimeout(timer);
      loader.stop();
    };
  }, [scene, loader]);
}

function keepInLink(scene: Scene): void {
  const { t0, t1 } = scene.window.peek();
  const isWhole = t0 <= 0 && t1 >= scene.now();
  const range = formatRange({ from: Math.max(t0, 0) / 1e9, to: t1 / 1e9 });
  setParams({ t: isWhole || scene.isFollowing.peek() ? null : range }, { replace: true });
}

/** The lanes: a scrolled box in which canvases and heads stay in place. */
function Lanes({ scene, path }: { scene: Scene; path: CriticalPath | null }) {
  const surface = useRef<HTMLDivElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const [below, above] = [base.current!, overlay.current!];
    const layer = new BaseLayer(below, scene);
    const stops = [
      onNextFrame(scene, () => layer.paint()),
      onNextFrame(
        scene,
        () => {
          const segments = path ? placePath(path, scene.data.peek(), scene.baseNs) : [];
          paintOverlay(above, scene, segments);
        },
        overlayInputs,
      ),
      new Gestures(surface.current!, scene).attach(),
      watchSize(surface.current!, scene),
    ];
    return () => {
      stops.forEach((stop) => {
        stop();
      });
    };
  }, [scene, path]);
  const layout = scene.layout.value;
  const shown = scene.data.value;
  return (
    <div
      class={`tl-scroll ${scene.isMeasuring.value ? "measuring" : ""}`}
      onScroll={(event) => {
        scene.scroll.value = event.currentTarget.scrollTop;
      }}
    >
      <div class="tl-stage">
        <Heads scene={scene} />
        <div
          class="tl-surface"
          ref={surface}
          tabIndex={0}
          role="application"
          aria-label={`Timeline, ${shown?.header.lanes.length ?? 0} lanes. W and S zoom, A and D move, full stop and comma go through the spans of a row; L lists what is in view below.`}
        >
          <canvas ref={base} class="tl-base" aria-hidden="true" />
          <canvas ref={overlay} class="tl-overlay" aria-hidden="true" />
        </div>
      </div>
      <div
        class="tl-spacer"
        style={{ height: `${(layout?.height ?? 0) + (layout?.pinnedHeight ?? 0)}px` }}
      />
    </div>
  );
}

function baseInputs(scene: Scene): void {
  void [scene.data.value, scene.window.value, scene.layout.value, scene.scroll.value];
  void [scene.size.value, scene.growth.value, shownTheme.value];
}

function overlayInputs(scene: Scene): void {
  baseInputs(scene);
  void [scene.hovered.value, scene.selected.value, scene.area.value, scene.measured.value];
  void asOf.value;
}

/** Paint with the next frame of the screen whenever an input changes, once however many did. */
function onNextFrame(scene: Scene, paint: () => void, inputs = baseInputs): () => void {
  let frame = 0;
  const stop = effect(() => {
    inputs(scene);
    if (frame === 0) {
      frame = requestAnimationFrame(() => {
        frame = 0;
        paint();
      });
    }
  });
  return () => {
    stop();
    cancelAnimationFrame(frame);
  };
}

function watchSize(surface: HTMLElement, scene: Scene): () => void {
  const observer = new ResizeObserver(() => {
    scene.size.value = { width: surface.clientWidth, height: surface.clientHeight };
  });
  observer.observe(surface);
  return () => {
    observer.disconnect();
  };
}
