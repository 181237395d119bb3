/** Ways to the same data from elsewhere, as text to copy and to try. */
import { useState } from "preact/hooks";
import type { Overview } from "../../model/answers";
import { visible } from "../../model/format";
import { isImported } from "../../model/origin";
import { ServerSource } from "../../model/source";
import { type Line, wiringLines } from "../../model/wiring";
import { useResource } from "../../state/answer";
import { source } from "../../state/source";
import { Badge } from "../../views/bits";
import { copyText } from "../../views/copy";

interface Told {
  is_good: boolean;
  sentence: string;
}

export function Wiring({ overview }: { overview: Overview }) {
  const address = source().isLive ? new URL(location.pathname, location.href) : null;
  const wires = useResource<{ wires: Line[] }>("wiring").data?.wires ?? [];
  return (
    <ul class="wiring">
      {[...(isImported(overview) ? [] : wires), ...wiringLines(overview, address)].map((line) => (
        <WireLine key={line.title} line={line} run={overview.name} />
      ))}
    </ul>
  );
}

function WireLine({ line, run }: { line: Line; run: string }) {
  const [told, setTold] = useState<Told | "asking" | null>(null);
  const { title, text, test } = line;
  const server = source();
  const tryIt = async (from: ServerSource): Promise<void> => {
    setTold("asking");
    setTold(
      await from
        .post<Told>(run, "wiring", { test })
        .catch((error: Error) => ({ is_good: false, sentence: error.message })),
    );
  };
  return (
    <li>
      <p class="dim">{title}</p>
      <div class="row">
        <code>{visible(text)}</code>
        <button class="spread" onClick={() => void copyText(text)} aria-label={`Copy: ${title}`}>
          Copy
        </button>
        {test && server instanceof ServerSource && (
          <button
            disabled={told === "asking"}
            onClick={() => void tryIt(server)}
            aria-label={`Test: ${title}`}
          >
            Test
          </button>
        )}
      </div>
      <p role="status">
        {told === "asking" && "Trying…"}
        {told && told !== "asking" && (
          <>
            <Badge tone={told.is_good ? "good" : "bad"}>{told.is_good ? "works" : "fails"}</Badge>{" "}
            {told.sentence}
          </>
        )}
      </p>
    </li>
  );
}
