/** Where a session waits, or last hung: recorded stacks, and a fresh one on request. */
import { useState } from "preact/hooks";
import { plural } from "../../model/format";
import { link } from "../../state/route";
import { AskButton, type Fresh, FreshStacks } from "../now/await";
import type { Shown } from "./page";

const SHOWN = 3;

export function AwaitTab({ overview, answer, turns }: Shown) {
  const { session, stacks, now_ns } = answer;
  const recorded: Fresh = {
    now_ns,
    is_fresh: false,
    note: "",
    stacks: stacks.slice(-SHOWN).reverse(),
  };
  const [asked, setAsked] = useState<Fresh | null>(null);
  const awaits = turns?.awaits;
  const isLive = overview.is_alive && session.status === "open";
  return (
    <>
      {isLive && <AskButton session={session.span_id} onAnswer={setAsked} />}
      {awaits && (
        <p>
          {awaits.example_session === null ? (
            "No other open session sits on the same line."
          ) : (
            <a href={link("session", awaits.example_session, { tab: "await" })}>
              {plural(awaits.others_on_line, "other open session")} on the same line
            </a>
          )}
        </p>
      )}
      {!asked && stacks.length === 0 && (
        <p class="dim">No await stack was recorded; one is once a span is open for long.</p>
      )}
      <FreshStacks
        fresh={asked ?? recorded}
        at={{ now_ns, is_alive: isLive }}
        line={awaits?.frame ?? null}
      />
    </>
  );
}
