"""Panels over the traces in Tempo: slow sessions, and one trace in two pictures."""

from typing import Final

from grafana_foundation_sdk.builders import dashboard, nodegraph, table
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue, Panel

from dashboards.panels import HEIGHT, page_link
from dashboards.queries import TEMPO, from_tempo

__all__ = ["search_panels", "trace_panels"]

_TALL: Final = 12
# `pipe` joins several runs for a regular expression, and leaves the pattern for all as it is.
_SLOW_SESSIONS: Final = (
    '{ resource.rollscope.run =~ "${run:pipe}" && span.rollscope.kind = "session"'
    " && duration > ${slow:raw}s }"
)
_ONE_TRACE: Final = "${trace:raw}"


def search_panels() -> list[Builder[Panel]]:
    """Search traces."""
    return [_search()]


def trace_panels() -> list[Builder[Panel]]:
    """Draw the trace whose id was chosen."""
    return [_waterfall(), _nodes()]


def _search() -> table.Panel:
    """Search slow sessions; the id of a trace leads to its picture below, or to the page."""
    picture = dashboard.DashboardLink("Draw it below").url(
        "/d/rollscope-rollout?${run:queryparam}&${server:queryparam}&${slow:queryparam}"
        "&${__url_time_range}&var-trace=${__value.raw}"
    )
    page = page_link("session/${__value.raw}", "${run:raw}")
    links = [picture.build().to_json(), page.build().to_json()]
    return (
        table.Panel()
        .title("Slow sessions")
        .description(
            "Traces of tasks with a session that took longer than is set above. A click on the id"
            " of one lets it be drawn below, or opens it in Rollscope if one run is chosen."
        )
        .unit("ms")
        .height(HEIGHT)
        .span(24)
        .datasource(TEMPO)
        .with_target(from_tempo(_SLOW_SESSIONS))
        .show_header(True)
        .override_by_name("traceID", [DynamicConfigValue("links", links)])
    )


def _waterfall() -> dashboard.Panel:
    """Draw one trace as its spans over time."""
    return (
        dashboard.Panel()
        .type("traces")
        .title("Trace")
        .description("The trace whose id is set above, over time: a task, its sessions, phases.")
        .unit("ms")
        .options({})
        .height(_TALL)
        .span(14)
        .datasource(TEMPO)
        .with_target(from_tempo(_ONE_TRACE))
    )


def _nodes() -> nodegraph.Panel:
    """Draw the same trace as what calls what."""
    return (
        nodegraph.Panel()
        .title("What calls what")
        .description("The same trace as a graph: the colour of a ring says whose time it was.")
        .unit("ms")
        .height(_TALL)
        .span(10)
        .nodes(nodegraph.NodeOptions().main_stat_unit("ms"))
        .datasource(TEMPO)
        .with_target(from_tempo(_ONE_TRACE))
    )
