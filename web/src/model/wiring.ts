/** Lines to type about a run, and to reach its server by. */
import type { Overview } from "./answers";

export interface Line {
  title: string;
  text: string;
  /** The server's name for the test of it, if there is one. */
  test?: string;
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
    { title: "Ask the run in SQL", text: `rollscope sql ${run}` },
    {
      title: "Keep it in ClickHouse, where many can ask it",
      text: `rollscope feed ${run} --to clickhouse://HOST/DATABASE${overview.is_alive ? " --follow" : ""}`,
    },
  ];
  if (overview.is_alive) {
    lines.push({
      title: "Watch for stuck rollouts, and end with 3 as soon as there is one",
      text: `rollscope stuck ${run} --min-band stuck --watch --fail`,
    });
  }
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
