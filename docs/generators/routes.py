"""What each route of the server is for. One that is missing here, or too many, fails the page."""

from typing import Final

__all__ = ["MEANINGS"]

_API: Final = "/api/v1"
_WINDOW: Final = "`by`, `t0`, `t1`, `first`, `lanes`"

MEANINGS: Final[dict[tuple[str, str], str]] = {
    ("GET", "/"): "the page",
    ("GET", "/{name}"): "a file of the page",
    (
        "GET",
        "/metrics",
    ): "[metrics](../metrics.md) of all runs, as OpenMetrics or Prometheus' text",
    ("GET", "/healthz"): "whether the server is up; needs no token",
    ("GET", "/v1/ingest"): "who listens: version, and the only run that is taken, if there is one",
    ("POST", "/v1/ingest"): "takes [frames](../wire.md) of one process",
    ("POST", "/v1/traces"): "takes spans over [OTLP](../otlp.md)",
    ("POST", "/v1/metrics"): "takes metrics over OTLP",
    ("POST", "/v1/logs"): "takes log records over OTLP",
    ("GET", "/api/trace"): "for watchers of XTuner's viewers: `train_step`, `scope`, `run`",
    ("GET", f"{_API}/runs"): "the runs, the newest first",
    ("GET", f"{_API}/schema"): "the JSON schema of every answer",
    ("GET", f"{_API}/events"): "server-sent events: how far runs have come; of one run with `run`",
    ("GET", f"{_API}/run/{{run}}"): "the answer `overview`",
    ("GET", f"{_API}/run/{{run}}/answer/{{name}}"): "[an answer](#answers)",
    ("GET", f"{_API}/run/{{run}}/progress"): (
        "once what the events say of a run, for a page that a proxy keeps them from"
    ),
    ("GET", f"{_API}/run/{{run}}/tile"): (
        f"what a window of the timeline shows, as a [view frame](../view-frame.md): {_WINDOW}, "
        "`width`, `f` (a filter), `only`; `overview=W` and `silhouettes=1` add to it"
    ),
    ("GET", f"{_API}/run/{{run}}/frame"): (
        "all spans of a run of up to about a million: `by`, `mode` (`raw` or `packed`)"
    ),
    ("GET", f"{_API}/run/{{run}}/delta"): (
        "what changed since a frame: `since`, `by`; 410 if that is too old, or another server's"
    ),
    ("GET", f"{_API}/run/{{run}}/area"): f"sums over an area of the timeline: {_WINDOW}",
    ("GET", f"{_API}/run/{{run}}/span"): "one span, exactly: `by`, `lane`, `row`, `start`",
    ("GET", f"{_API}/run/{{run}}/export"): (
        "a table of up to 500,000 rows: `what`, `format` (`csv`, `json` or `parquet`), `step`, "
        "`since_ns`, `until_ns`"
    ),
    ("POST", f"{_API}/run/{{run}}/stack"): (
        "where open spans hang, asked of the running processes now; of one session with `session`"
    ),
    ("GET", f"{_API}/run/{{run}}/links"): (
        "the ways to Grafana and Tempo, from a run or, with `session`, from one of its sessions"
    ),
    (
        "GET",
        f"{_API}/run/{{run}}/wiring",
    ): "what to paste into Prometheus and its kin",
    ("POST", f"{_API}/run/{{run}}/wiring"): "tries one of them: `test`",
    ("GET", f"{_API}/sd"): "the engines that are asked, in the form of Prometheus' HTTP discovery",
    **{
        (method, f"{_API}{prefix}/targets"): f"{what} asked for [metrics](../engines.md){whose}"
        for prefix, whose in (("", ""), ("/run/{run}", ", for this run"))
        for method, what in (
            ("GET", "the engines that are"),
            ("POST", "adds engines that are"),
            ("DELETE", "removes engines that are"),
        )
    },
    (
        "GET",
        f"{_API}/services",
    ): "for clients of [RL-Insight](../integrations/rl-insight.md): the ports",
    ("GET", f"{_API}/prometheus/targets"): "for clients of RL-Insight: the targets of a job",
    ("POST", f"{_API}/prometheus/targets"): "for clients of RL-Insight: adds targets",
    ("DELETE", f"{_API}/prometheus/targets"): (
        "for clients of RL-Insight: removes targets: `job_name`, `target`"
    ),
}
"""By method and path; parameters of a query stand in code."""
