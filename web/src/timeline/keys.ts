/** The keys of the timeline. */

import { neighbourOf } from "../model/hit";
import { endNs, startNs } from "../model/hit";
import type { Key } from "../state/keys";
import { asOf } from "../state/selection";
import type { Scene } from "./scene";

const ZOOM = 1.5;
const PAN = 0.2;
const CURSOR_STEP = 0.01;
const PLAY_MS = 50;

/** Give the keys of a timeline, and a function that stops what they started. */
export function timelineKeys(scene: Scene): { keys: Key[]; stop: () => void } {
  let player: ReturnType<typeof setInterval> | undefined;
  const stop = (): void => {
    clearInterval(player);
    player = undefined;
  };
  const play = (): void => {
    if (player !== undefined) {
      stop();
      return;
    }
    player = setInterval(() => moveCursor(scene, CURSOR_STEP / 4), PLAY_MS);
  };
  const keys: Key[] = [
    { key: "w", label: "Zoom in", run: () => scene.zoom(ZOOM) },
    { key: "s", label: "Zoom out", run: () => scene.zoom(1 / ZOOM) },
    { key: "a", label: "Earlier", run: () => scene.pan(-PAN) },
    { key: "d", label: "Later", run: () => scene.pan(PAN) },
    { key: "f", label: "Fit the selection", run: () => scene.fit() },
    { key: "0", label: "The whole run", run: () => scene.reset() },
    {
      key: "m",
      label: "Measure by dragging",
      run: () => {
        scene.isMeasuring.value = !scene.isMeasuring.value;
      },
    },
    {
      key: "l",
      label: "Table of what is in view",
      run: () => {
        scene.isTable.value = !scene.isTable.value;
      },
    },
    { key: ".", label: "Next span in its row", run: () => pickNeighbour(scene, 1) },
    { key: ",", label: "Previous span in its row", run: () => pickNeighbour(scene, -1) },
    { key: "p", label: "Pin the lane, or let it go", run: () => pinLane(scene) },
    { key: "ArrowRight", label: "Cursor later", run: () => moveCursor(scene, CURSOR_STEP) },
    { key: "ArrowLeft", label: "Cursor earlier", run: () => moveCursor(scene, -CURSOR_STEP) },
    { key: "Shift+Space", label: "Play the cursor", run: play },
  ];
  return { keys, stop };
}

/** Move the cursor by a share of the window; the first time it appears in its middle. */
function moveCursor(scene: Scene, share: number): void {
  const { t0, t1 } = scene.window.peek();
  const before = asOf.peek();
  const from = before === null ? (t0 + t1) / 2 / 1e9 : before;
  const to = from + (before === null ? 0 : (share * (t1 - t0)) / 1e9);
  asOf.value = Math.min(Math.max(to, 0), scene.now() / 1e9);
}

function pickNeighbour(scene: Scene, direction: 1 | -1): void {
  const data = scene.data.peek();
  const picked = scene.selected.peek();
  if (data === null || data.tables[0] === undefined) {
    return;
  }
  if (picked === null) {
    const first = data.tables[0].count > 0 ? { table: data.tables[0], index: 0 } : null;
    scene.selected.value = first;
    return;
  }
  const next = neighbourOf(data.tables, picked, direction);
  if (next !== null) {
    scene.selected.value = next;
    bringIntoView(scene);
  }
}

function bringIntoView(scene: Scene): void {
  const span = scene.selected.peek();
  const { t0, t1 } = scene.window.peek();
  if (span !== null && (endNs(span, scene.now()) < t0 || startNs(span) > t1)) {
    const from = startNs(span) - (t1 - t0) * 0.3;
    scene.move({ t0: from, t1: from + (t1 - t0) });
  }
}

function pinLane(scene: Scene): void {
  const span = scene.hovered.peek() ?? scene.selected.peek();
  if (span !== null) {
    scene.togglePin(scene.laneIdOf(span));
  }
}
