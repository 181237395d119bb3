/** The await stack of one open session: as it was recorded, or fresh from its process. */
import { useState } from "preact/hooks";
import type { StackDetail, StuckRow } from "../../model/answers";
import { plural, visible } from "../../model/format";
import { ServerSource, SourceError } from "../../model/source";
import { term } from "../../model/term";
import { link, runName } from "../../state/route";
import { source } from "../../state/source";
import { Age, type AsOf } from "../../views/age";
import { AwaitChain } from "../../views/awaits";
import { Text } from "../../views/bits";
import { copyText } from "../../views/copy";
import { Drawer } from "../../views/drawer";
import { sessionName } from "../../views/sessionlink";

/** What the server answers when a process is asked where it hangs. */
export interface Fresh {
  now_ns: number;
  is_fresh: boolean;
  note: string;
  stacks: StackDetail[];
}

type Asking = { state: "idle" | "asking" } | { state: "failed"; error: string };

export function AwaitDrawer(props: { row: StuckRow; at: AsOf; onClose: () => void }) {
  const { row, at, onClose } = props;
  const [fresh, setFresh] = useState<Fresh | null>(null);
  const frames = fresh?.stacks.flatMap((one) => one.frames) ?? row.stack;
  return (
    <Drawer
      label={`Await stack of ${visible(row.task_key ?? row.name)}`}
      title={
        <>
          <Text text={sessionName(row, row.session_id ?? row.name)} max={40} />
        </>
      }
      onClose={onClose}
    >
      <p>
        In <b>{visible(row.name)}</b> {row.detail && <Text text={row.detail} max={60} />} for{" "}
        <b>
          <Age ns={row.age_ns} at={at} />
        </b>
        , on <Text text={row.host} max={40} />.
      </p>
      {fresh ? (
        <FreshStacks fresh={fresh} at={at} line={row.line} />
      ) : (
        <Recorded row={row} at={at} />
      )}
      <Others row={row} />
      <div class="row">
        {at.is_alive && row.session_id !== null && (
          <AskButton session={row.session_id} onAnswer={setFresh} />
        )}
        {frames.length > 0 && (
          <button onClick={() => void copyText(frames.join("\n"))}>Copy</button>
        )}
        {row.session_id !== null && (
          <a class="button" href={link("session", row.session_id)}>
            Open the session
          </a>
        )}
      </div>
    </Drawer>
  );
}

function Recorded({ row, at }: { row: StuckRow; at: AsOf }) {
  if (row.stack.length === 0) {
    return (
      <p class="dim">
        No await stack has been recorded. A process writes one by itself once a span has been open
        for long; a span that no coroutine waits in has none.
      </p>
    );
  }
  return (
    <>
      <p class="dim">
        Taken <Age ns={row.stack_age_ns} at={at} /> ago; positions in code only, no values.
      </p>
      <AwaitChain frames={row.stack} line={row.line} label="Chain of awaits" />
    </>
  );
}

export function FreshStacks({ fresh, at, line }: { fresh: Fresh; at: AsOf; line: string | null }) {
  return (
    <div role="status" class="fresh">
      {fresh.note && <p class="dim">{fresh.note}</p>}
      {fresh.stacks.map((one) => (
        <section key={`${one.span_id} ${one.task ?? ""}`}>
          <p class="dim">
            {one.task && (
              <>
                <Text text={one.task} max={40} />:{" "}
              </>
            )}
            {fresh.is_fresh ? "asked just now, " : ""}taken{" "}
            <Age
              ns={fresh.now_ns - one.time_ns}
              at={{ now_ns: fresh.now_ns, is_alive: at.is_alive }}
            />{" "}
            ago.
          </p>
          <AwaitChain frames={one.frames} line={line} label="Chain of awaits" />
        </section>
      ))}
    </div>
  );
}

function Others({ row }: { row: StuckRow }) {
  if (row.stack.length === 0) return null;
  if (row.same_line === 0) return <p>No other open session sits on the same line.</p>;
  return (
    <p>
      <a href={link("sessions", "", { f: `${term("phase", row.name)} status:open` })}>
        {plural(row.same_line, "other open session")}
      </a>{" "}
      on the same line.
    </p>
  );
}

export function AskButton(props: { session: string; onAnswer: (fresh: Fresh) => void }) {
  const [asking, setAsking] = useState<Asking>({ state: "idle" });
  const server = source();
  if (!(server instanceof ServerSource)) return null;
  const ask = async (): Promise<void> => {
    setAsking({ state: "asking" });
    try {
      const session = props.session;
      props.onAnswer(await server.post<Fresh>(runName.peek(), "stack", { session }));
      setAsking({ state: "idle" });
    } catch (error) {
      const text =
        error instanceof SourceError ? `${error.message} ${error.advice}` : String(error);
      setAsking({ state: "failed", error: text });
    }
  };
  return (
    <>
      <button disabled={asking.state === "asking"} onClick={() => void ask()}>
        {asking.state === "asking" ? "Asking…" : "Ask for a fresh one"}
      </button>
      {asking.state === "failed" && (
        <p class="bad" role="alert">
          {asking.error}
        </p>
      )}
    </>
  );
}
