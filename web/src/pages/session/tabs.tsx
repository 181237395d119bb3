/** Messages, tools, reward, attributes, events and awaits of a session, one at a time. */
import type { ComponentType } from "preact";
import { param, setParams } from "../../state/route";
import { Choice } from "../../views/choice";
import { AwaitTab } from "./awaits";
import { AttributesTab, EventsTab, RewardTab, ToolsTab } from "./facts";
import { MessagesTab } from "./messages";
import type { Shown } from "./page";

const TABS: readonly (readonly [string, string, ComponentType<Shown>])[] = [
  ["messages", "Messages", MessagesTab],
  ["tools", "Tools", ToolsTab],
  ["reward", "Reward", RewardTab],
  ["attributes", "Attributes", AttributesTab],
  ["events", "Events", EventsTab],
  ["await", "Await", AwaitTab],
];

export function Tabs(shown: Shown) {
  // Of a session that hangs, or hung when its process died, the first question is where.
  const { session, stacks } = shown.answer;
  const hangs = stacks.length > 0 && (session.status === "open" || session.status === "lost");
  const first = hangs ? "await" : "messages";
  // Nobody can be asked once it is over, so without a stack there is nothing to see.
  const tabs = stacks.length || shown.overview.is_alive ? TABS : TABS.slice(0, -1);
  const wanted = param("tab", first);
  const [key, title, View] = tabs.find(([one]) => one === wanted) ?? TABS[0]!;
  return (
    <section class="panel session-tabs" aria-label={title} data-panel="tabs">
      <Choice
        label="About the session"
        options={tabs.map(([one, text]) => [one, text] as const)}
        chosen={key}
        onChoose={(tab) => setParams({ tab }, { replace: true })}
      />
      <View {...shown} />
    </section>
  );
}
