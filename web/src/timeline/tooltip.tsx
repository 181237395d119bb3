/** What is under the pointer, in two lines beside it. */
import { useEffect, useRef } from "preact/hooks";
import { duration, grouped, visible } from "../model/format";
import { endNs, startNs } from "../model/hit";
import type { Scene } from "./scene";
import { flagWords } from "./spantable";

const GAP_PX = 14;

export function Tooltip({ scene }: { scene: Scene }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const follow = (event: PointerEvent): void => {
      const element = box.current;
      if (element === null) return;
      const left = Math.min(event.clientX + GAP_PX, window.innerWidth - element.offsetWidth - 8);
      const top = Math.min(event.clientY + GAP_PX, window.innerHeight - element.offsetHeight - 8);
      element.style.transform = `translate(${Math.max(left, 4)}px, ${Math.max(top, 4)}px)`;
    };
    window.addEventListener("pointermove", follow);
    return () => {
      window.removeEventListener("pointermove", follow);
    };
  }, []);
  const span = scene.hovered.value;
  const lane = span && scene.data.value?.header.lanes[span.table.lane[span.index]!];
  const merged = span ? (span.table.tally?.[span.index] ?? 1) : 1;
  return (
    <div class="tl-tooltip" ref={box} hidden={span === null} aria-hidden="true">
      {span && (
        <>
          <b>{visible(scene.nameOf(span)) || "–"}</b>{" "}
          {merged > 1
            ? `${grouped(merged)} spans in this pixel, longest ${duration(
                (span.table.longest?.[span.index] ?? 0) * span.table.tickNs,
              )}`
            : duration(endNs(span, scene.now()) - startNs(span))}
          <br />
          <span class="dim">
            {[
              `at ${duration(Math.max(startNs(span), 0))}`,
              visible(lane?.label ?? ""),
              ...flagWords(span.table.flags[span.index]!),
            ].join(" · ")}
          </span>
        </>
      )}
    </div>
  );
}
