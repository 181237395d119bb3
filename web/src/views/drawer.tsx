/** A drawer beside the page, a sheet from below on a phone; the page under it stays in use. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useKeys } from "../state/keys";

export interface DrawerProps {
  title: ComponentChildren;
  /** Names it to assistive tools. */
  label: string;
  onClose: () => void;
  actions?: ComponentChildren;
  children: ComponentChildren;
}

/** Show a drawer for as long as it is rendered; Escape closes it and the focus goes back. */
export function Drawer({ title, label, onClose, actions, children }: DrawerProps) {
  const panel = useRef<HTMLDivElement>(null);
  const close = useRef(onClose);
  close.current = onClose;
  useKeys([{ key: "Escape", label: `Close ${label}`, run: () => close.current() }]);
  useEffect(() => takeFocus(panel.current!), []);
  return (
    <div
      class="drawer"
      ref={panel}
      role="dialog"
      aria-label={label}
      tabIndex={-1}
      onKeyDown={(event) => {
        // Also from inside a text box, and where keys are switched off.
        if (event.key !== "Escape") return;
        event.preventDefault();
        close.current();
      }}
    >
      <header class="drawer-head row">
        <h2>{title}</h2>
        <span class="spread row">
          {actions}
          <button class="plain" onClick={onClose} aria-label="Close" title="Close (Esc)">
            ✕
          </button>
        </span>
      </header>
      <div class="drawer-body">{children}</div>
    </div>
  );
}

/** Move the focus in; give it back afterwards, unless the reader has taken it elsewhere. */
function takeFocus(panel: HTMLElement): () => void {
  const opener = document.activeElement;
  panel.focus({ preventScroll: true });
  return () => {
    const isOurs =
      document.activeElement === document.body || panel.contains(document.activeElement);
    if (isOurs && opener instanceof HTMLElement && opener.isConnected) {
      opener.focus({ preventScroll: true });
    }
  };
}
