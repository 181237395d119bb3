/** A panel: a titled part of a page that shows one answer, whatever state that is in. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { SourceError } from "../model/source";
import { askAgain, type Asked } from "../state/answer";
import { Sentence } from "./bits";
import { copyText } from "./copy";

export interface PanelProps<T> {
  title: string;
  /** One line on what it shows. */
  hint?: ComponentChildren;
  asked: Asked<T>;
  /** Said instead of an empty picture; null if there is something to see. */
  empty?: (data: T) => ComponentChildren | null;
  actions?: ComponentChildren;
  className?: string;
  id?: string;
  children: (data: T) => ComponentChildren;
}

export function Panel<T>(props: PanelProps<T>) {
  const { asked, title } = props;
  const id = props.id ?? title.toLowerCase().replace(/[^a-z]+/g, "-");
  return (
    <section
      class={`panel ${props.className ?? ""}`}
      aria-labelledby={`panel-${id}`}
      data-panel={id}
      aria-busy={asked.isLoading}
    >
      <header class="panel-head">
        <h2 id={`panel-${id}`}>{title}</h2>
        {props.hint && <span class="dim panel-hint">{props.hint}</span>}
        <span class="spread row">{props.actions}</span>
      </header>
      <PanelBody {...props} />
    </section>
  );
}

function PanelBody<T>({ asked, empty, children, title }: PanelProps<T>) {
  if (asked.data === null) {
    return asked.error ? <Failure title={title} error={asked.error} /> : <Skeleton />;
  }
  const nothing = empty?.(asked.data) ?? null;
  return (
    <>
      {asked.error && asked.error.status !== 0 && <Failure title={title} error={asked.error} />}
      <div class={asked.error ? "panel-body stale" : "panel-body"}>
        {nothing !== null ? <p class="dim">{nothing}</p> : children(asked.data)}
      </div>
    </>
  );
}

/** What failed, and what to do; the other panels go on. */
export function Failure({ title, error }: { title: string; error: SourceError }) {
  const details = `${title}: ${error.message} ${error.advice} (${error.status}, ${location.hash})`;
  return (
    <div class="failure" role="alert">
      <p>
        <b>{error.message}</b> <Sentence text={error.advice} />
      </p>
      <div class="row">
        <button onClick={askAgain}>Try again</button>
        <button onClick={() => void copyText(details)}>Copy details</button>
      </div>
    </div>
  );
}

/** Grey bars after a tenth of a second, so that quick answers do not flicker. */
export function Skeleton() {
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => {
      setLate(true);
    }, 100);
    return () => {
      clearTimeout(timer);
    };
  }, []);
  return (
    <div class="skeleton" role="status">
      {isLate && (
        <>
          <span class="visually-hidden">Loading</span>
          <i />
          <i />
          <i />
        </>
      )}
    </div>
  );
}
