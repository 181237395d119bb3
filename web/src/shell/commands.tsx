/** Commands by name: every key's action, every page, and the same answer from a terminal. */
import { signal } from "../state/signals";
import { useState } from "preact/hooks";
import { commandFor } from "../model/command";
import { knownKeys } from "../state/keys";
import { navigate, route } from "../state/route";
import { copyText } from "../views/copy";
import { Dialog } from "./dialog";

const isOpen = signal(false);

export function openCommands(): void {
  isOpen.value = true;
}

interface Command {
  label: string;
  key: string;
  run: () => void;
}

function commands(): Command[] {
  const shown = route.value;
  const line = commandFor(shown);
  const own: Command[] = [{ label: "All runs", key: "", run: () => navigate("#/") }];
  if (line)
    own.unshift({ label: `Copy as command: ${line}`, key: "", run: () => void copyText(line) });
  return [...own, ...knownKeys.value.filter((one) => one.key !== "Ctrl+K")];
}

export function CommandDialog() {
  return (
    <Dialog open={isOpen} title="Commands">
      <CommandList />
    </Dialog>
  );
}

function CommandList() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = commands().filter((one) =>
    words.every((word) => one.label.toLowerCase().includes(word)),
  );
  const run = (command: Command | undefined): void => {
    if (!command) return;
    isOpen.value = false;
    command.run();
  };
  const chosen = Math.min(at, found.length - 1);
  return (
    <>
      <input
        class="command-box"
        autofocus
        role="combobox"
        aria-label="Command"
        aria-expanded="true"
        aria-controls="command-list"
        aria-activedescendant={found.length ? `command-${chosen}` : undefined}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step) {
            setAt(Math.max(0, Math.min(found.length - 1, chosen + step)));
            event.preventDefault();
          } else if (event.key === "Enter") {
            run(found[chosen]);
          }
        }}
      />
      <ul id="command-list" role="listbox" aria-label="Commands">
        {found.map((one, i) => (
          <li
            key={one.label}
            id={`command-${i}`}
            role="option"
            aria-selected={i === chosen}
            onClick={() => run(one)}
          >
            {one.label} {one.key && <kbd>{one.key}</kbd>}
          </li>
        ))}
      </ul>
    </>
  );
}
