/** What was said in a session, as far as it was kept: plain text, or JSON set out line by line. */
import { useState } from "preact/hooks";
import type { PayloadMessage } from "../../model/answers";
import { bytes, plural, visible } from "../../model/format";
import { isImported } from "../../model/origin";
import { useAnswer } from "../../state/answer";
import { Badge, Text, Time } from "../../views/bits";
import { saveFile } from "../../views/copy";
import { Failure, Skeleton } from "../../views/panel";
import type { Shown } from "./page";

export function MessagesTab(shown: Shown) {
  const { span_id, status } = shown.answer.session;
  const { data, error } = useAnswer(
    "payloads",
    { session: span_id },
    { follow: status === "open" },
  );
  if (!data) return error ? <Failure title="messages" error={error} /> : <Skeleton />;
  if (!data.captured) {
    if (isImported(shown.overview))
      return <p class="dim">The imported files hold no text of it.</p>;
    return (
      <p class="dim">
        <b>Not recorded: capture is opt-in.</b> {data.why}
      </p>
    );
  }
  return (
    <>
      <ol class="messages">
        {data.messages.map((one) => (
          <Message key={`${one.span_id} ${one.index}`} message={one} shown={shown} />
        ))}
      </ol>
      {data.note && <p class="dim">{visible(data.note)}</p>}
    </>
  );
}

function Message({ message, shown }: { message: PayloadMessage; shown: Shown }) {
  const [full, setFull] = useState("");
  const session = shown.answer.session.span_id;
  // Until it is opened this is the answer that the list is made of.
  const { data } = useAnswer("payloads", { session, full }, { follow: false });
  const opened = full ? data?.messages[0] : undefined;
  const { span_id, text, is_json, is_whole } = opened ?? message;
  return (
    <li
      class={(shown.lit ?? shown.picked) === span_id ? "message lit" : "message"}
      onPointerEnter={() => shown.onLight(span_id)}
      onPointerLeave={() => shown.onLight(null)}
    >
      {message.repeated > 0 && <p class="dim">{plural(message.repeated, "message")} as above</p>}
      <div class="row">
        <b>
          <Text text={message.role ?? message.name} />
        </b>
        <span class="dim">
          <Time ns={message.time_ns} withMillis /> {bytes(message.bytes)}
        </span>
        {message.cut && <Badge title="Only its beginning was kept">cut</Badge>}
        <button class="link spread" onClick={() => shown.onPick(span_id)}>
          Span
        </button>
      </div>
      <pre dir="auto">{visible(is_json && is_whole ? indented(text) : text)}</pre>
      {opened ? (
        <p class="dim">
          <button onClick={() => saveFile(`${full}.txt`, "text/plain", text)}>Download</button>{" "}
          {visible(data!.note ?? "")}
        </p>
      ) : (
        !is_whole && (
          <button class="link" onClick={() => setFull(`${span_id},${message.index}`)}>
            Open all of it
          </button>
        )
      )}
    </li>
  );
}

function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
