/** A dialog over the page: the browser's own, which keeps the focus and closes with Escape. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Signal } from "../state/signals";

export function Dialog(props: {
  open: Signal<boolean>;
  title: string;
  children: ComponentChildren;
}) {
  const element = useRef<HTMLDialogElement>(null);
  const isOpen = props.open.value;
  useEffect(() => {
    if (isOpen && !element.current?.open) element.current?.showModal();
    if (!isOpen) element.current?.close();
  }, [isOpen]);
  return (
    <dialog
      ref={element}
      aria-label={props.title}
      onClose={() => {
        props.open.value = false;
      }}
      onClick={(event) => {
        if (event.target === element.current) props.open.value = false;
      }}
    >
      {isOpen && (
        <div class="dialog-body">
          <header class="row">
            <h2>{props.title}</h2>
            <button
              class="plain spread"
              onClick={() => (props.open.value = false)}
              aria-label="Close"
            >
              ✕
            </button>
          </header>
          {props.children}
        </div>
      )}
    </dialog>
  );
}
