/** A chain of awaits: each line with its file, the innermost last, and where the program waits. */
import { visible } from "../model/format";

interface Frame {
  folder: string;
  file: string;
  name: string;
}

/** Take apart `file:line function`, as recorded. */
function parseFrame(text: string): Frame {
  const match = /^(.*?)([^/\\]*:\d+) (.*)$/s.exec(text);
  if (!match) return { folder: "", file: "", name: text };
  return { folder: match[1] ?? "", file: match[2] ?? "", name: match[3] ?? "" };
}

export interface AwaitChainProps {
  frames: readonly string[];
  label: string;
  /** Where the program itself waits, if that is known; the innermost line otherwise. */
  line?: string | null;
}

export function AwaitChain({ frames, label, line }: AwaitChainProps) {
  const found = line ? frames.lastIndexOf(line) : -1;
  const at = found < 0 ? frames.length - 1 : found;
  return (
    <ol class="awaits" aria-label={label}>
      {frames.map((text, i) => {
        const { folder, file, name } = parseFrame(visible(text));
        return (
          <li key={i} class={i === at ? "innermost" : i > at ? "library" : ""}>
            <bdi class="mono">{name}</bdi>
            {i === at && <span class="waits-here"> waits here</span>}
            <div class="mono dim" title={visible(text)}>
              {folder.length > 48 ? `…${folder.slice(-47)}` : folder}
              <span class="awaits-file">{file}</span>
            </div>
          </li>
        );
      })}
    </ol>
  );
}
