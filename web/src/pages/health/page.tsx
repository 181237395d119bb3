/** Health: can the data be trusted, and if not, what is to be done? */
import type { ComponentChildren } from "preact";
import type { Health } from "../../model/answers";
import { moment } from "../../model/format";
import { isImported } from "../../model/origin";
import { useAnswer } from "../../state/answer";
import { Badge } from "../../views/bits";
import { Elsewhere } from "../../views/elsewhere";
import { Panel } from "../../views/panel";
import type { PageProps } from "../index";
import { Clocks, Disk, Logs, Versions, badLogs } from "./files";
import { Findings, summary } from "./findings";
import { Drops, Loops, Processes } from "./processes";
import { ThisPage } from "./thispage";
import { HealthTiles } from "./tiles";
import { Wiring } from "./wiring";

export function HealthPage({ overview }: PageProps) {
  const asked = useAnswer("health");
  const isFile = isImported(overview);
  return (
    <div class="page health">
      <header class="row">
        <h1>Health</h1>
        {asked.data && !asked.data.is_alive && (
          <>
            <Badge>{isFile ? "as of the end of its files" : "as of its end"}</Badge>
            <span class="dim">{moment(asked.data.now_ns)}</span>
          </>
        )}
        <Elsewhere />
      </header>
      <Panel
        title="Findings"
        asked={asked}
        hint={asked.data ? summary(asked.data.findings) : ""}
        empty={(health) =>
          health.findings.length === 0 ? "The check-up finds nothing wrong." : null
        }
      >
        {(health) => <Findings findings={health.findings} />}
      </Panel>
      <Panel title="At a glance" asked={asked} className="bare">
        {(health) => <HealthTiles health={health} isFile={isFile} />}
      </Panel>
      <Panel
        title="Processes"
        asked={asked}
        empty={(health) =>
          health.processes.length === 0 ? "No process has been heard of yet." : null
        }
      >
        {(health) => <Processes health={health} isFile={isFile} />}
      </Panel>
      <div class="columns">
        {!isFile && (
          <Panel
            title="Drops"
            asked={asked}
            empty={(health) =>
              health.drops.length === 0 ? "No process had to drop anything." : null
            }
          >
            {(health) => <Drops drops={health.drops} />}
          </Panel>
        )}
        <Panel title="Clocks" asked={asked} empty={oneClock}>
          {(health) => <Clocks clocks={health.clocks} />}
        </Panel>
      </div>
      {!isFile && (
        <Panel
          title="Event loops"
          asked={asked}
          empty={(health) =>
            health.loops.length === 0 ? "No process tells how late its event loop is." : null
          }
        >
          {(health) => <Loops loops={health.loops} />}
        </Panel>
      )}
      <div class="columns">
        <Panel title="Disk" asked={asked}>
          {(health) => <Disk disk={health.disk} />}
        </Panel>
        <Panel
          title="Torn and damaged logs"
          asked={asked}
          empty={(health) =>
            badLogs(health).length === 0 ? "Every log can be read to its end." : null
          }
        >
          {(health) => <Logs health={health} />}
        </Panel>
      </div>
      <Panel title="Versions" asked={asked}>
        {(health) => <Versions health={health} isFile={isFile} />}
      </Panel>
      <Section title="This page">
        <ThisPage />
      </Section>
      <Section title="Wiring" hint="run these where the run is; add --dir if it is not in runs">
        <Wiring overview={overview} />
      </Section>
    </div>
  );
}

function oneClock(health: Health): string | null {
  return health.clocks.length === 0 ? "All processes share one clock; nothing was moved." : null;
}

/** A part of the page that asks nothing. */
function Section(props: { title: string; hint?: string; children: ComponentChildren }) {
  const id = `panel-${props.title.toLowerCase().replace(/ /g, "-")}`;
  return (
    <section class="panel" aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id}>{props.title}</h2>
        {props.hint && <span class="dim panel-hint">{props.hint}</span>}
      </header>
      {props.children}
    </section>
  );
}
