/** What is below the fold is made, and asked for, when the reader comes near. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const NEAR = "240px";

/** @param height what it will about take, so that the page does not jump */
export function Lazy(props: { height?: number; children: () => ComponentChildren }) {
  const [isNear, setNear] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const show = (): void => setNear(true);
    const observer = new IntersectionObserver(
      (seen) => {
        if (seen.some((one) => one.isIntersecting)) show();
      },
      { rootMargin: NEAR },
    );
    if (box.current) observer.observe(box.current);
    window.addEventListener("beforeprint", show);
    return () => {
      observer.disconnect();
      window.removeEventListener("beforeprint", show);
    };
  }, []);
  if (isNear) return <>{props.children()}</>;
  return <div ref={box} class="lazy" style={{ minHeight: `${props.height ?? 160}px` }} />;
}
