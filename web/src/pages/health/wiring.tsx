/** Ways to the same data from elsewhere, as text to copy. */
import type { Overview } from "../../model/answers";
import { visible } from "../../model/format";
import { source } from "../../state/source";
import { copyText } from "../../views/copy";

interface Line {
  title: string;
  text: string;
}

const LOOPBACK = /^(localhost|127\..*|\[::1\])$/;

function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;
}

/** Every line that works today, for this run. */
export function wiringLines(overview: Overview, address: URL | null): Line[] {
  const run = quoted(overview.name);
  const lines = [
    { title: "Check the run's data, every file to its end", text: `rollscope doctor ${run}` },
    {
      title: "Watch for stuck rollouts, and end with 3 as soon as there is one",
      text: `rollscope stuck ${run} --min-band stuck --watch --fail`,
    },
    { title: "Ask the run in SQL", text: `rollscope sql ${run}` },
    {
      title: "Keep it in ClickHouse, where many can ask it",
      text: `rollscope feed ${run} --to clickhouse://HOST/DATABASE --follow`,
    },
  ];
  if (!address) return lines;
  const name = encodeURIComponent(overview.name);
  const api = new URL(`api/v1/run/${name}/answer/now`, address).href;
  if (address.port) {
    const host = LOOPBACK.test(address.hostname) ? "HOST" : address.hostname;
    lines.unshift({
      title: "See this page from another machine; HOST is where the server runs",
      text: `ssh -L ${address.port}:localhost:${address.port} USER@${host}`,
    });
  }
  lines.push({
    title: "The same answers as JSON; the token is the one in the address that was printed",
    text: `curl -H "Authorization: Bearer TOKEN" ${quoted(api)}`,
  });
  return lines;
}

export function Wiring({ overview }: { overview: Overview }) {
  const address = source().isLive ? new URL(location.pathname, location.href) : null;
  return (
    <ul class="wiring">
      {wiringLines(overview, address).map((line) => (
        <li key={line.text}>
          <p class="dim">{line.title}</p>
          <div class="row">
            <code>{visible(line.text)}</code>
            <button
              class="spread"
              onClick={() => void copyText(line.text)}
              aria-label={`Copy: ${line.title}`}
            >
              Copy
            </button>
          </div>
        </li>
      ))}
    </ul>
  );
}
