"""What all dashboards have: the choice of runs, links to each other and to the page, the layout."""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import (
    Dashboard,
    DashboardCursorSync,
    DashboardLinkType,
    Panel,
    VariableHide,
    VariableModel,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from dashboards.palette import BAD
from dashboards.queries import PROMETHEUS

__all__ = ["Section", "chosen", "framed", "rendered", "typed_in"]

_TAG: Final = "rollscope"
_ALL: Final = VariableOption(True, "All", "$__all")


class Section(NamedTuple):
    """Panels under a title, placed from left to right and line by line."""

    title: str
    panels: Sequence[Builder[Panel]]
    is_collapsed: bool = False
    """Nothing is asked for it until it is opened; only for the last one."""


def chosen(
    name: str, label: str, query: str, description: str, *, is_multi: bool = True, regex: str = ""
) -> dashboard.QueryVariable:
    """Make a choice among what a query of Prometheus finds; of several, all at first."""
    made = (
        dashboard.QueryVariable(name)
        .label(label)
        .description(description)
        .datasource(PROMETHEUS)
        .query({"query": query, "refId": f"variable-{name}"})
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .regex(regex)
        .multi(is_multi)
        .include_all(is_multi)
    )
    # Also what has no such label, as an engine that was added for no run in particular.
    return made.all_value(".*").current(_ALL) if is_multi else made


def typed_in(name: str, label: str, default: str, description: str) -> dashboard.TextBoxVariable:
    """Make a field to type a value into."""
    field = dashboard.TextBoxVariable(name).label(label).description(description)
    option = VariableOption(True, default, default)
    return field.default_value(default).current(option).options([option])


def framed(
    uid: str,
    title: str,
    description: str,
    *sections: Section,
    variables: Sequence[Builder[VariableModel]] = (),
) -> Dashboard:
    """Make a dashboard of its sections."""
    made = (
        dashboard.Dashboard(f"Rollscope: {title}")
        .uid(uid)
        .description(description)
        .tags([_TAG])
        .timezone("browser")
        .editable()
        .refresh("10s")
        .time("now-1h", "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .variables([_runs(), _server(), *variables])
        .annotation(_alerts())
        .link(_others())
        .link(_page())
    )
    for section in sections:
        _place(made, section)
    return _numbered(made.build())


def rendered(made: Dashboard) -> str:
    """Write a dashboard as Grafana reads it."""
    return json.dumps(made, cls=JSONEncoder, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _place(made: dashboard.Dashboard, section: Section) -> None:
    row = dashboard.Row(section.title)
    if not section.is_collapsed:
        made.with_row(row)
        for panel in section.panels:
            made.with_panel(panel)
        return
    for panel in section.panels:
        row.with_panel(panel)
    made.with_row(row.collapsed(True))


def _numbered(made: Dashboard) -> Dashboard:
    """Give panels numbers, by which links and annotations know them."""
    outer: Sequence[Any] = made.panels or ()  # rows and panels, which share no base
    panels = [one for panel in outer for one in (panel, *getattr(panel, "panels", ()))]
    for number, panel in enumerate(panels, 1):
        panel.id_val = number
    return made


def _runs() -> dashboard.QueryVariable:
    query = "label_values(rollscope_run_info, run)"
    return chosen("run", "Run", query, "The runs that are shown.")


def _server() -> dashboard.QueryVariable:
    """Find the address of the page, for links; it is where Prometheus reads its metrics."""
    query = "label_values(rollscope_server_info, instance)"
    return chosen(
        "server", "Server", query, "Where links to Rollscope lead to.", is_multi=False
    ).hide(VariableHide.DONT_HIDE)


def _alerts() -> dashboard.AnnotationQuery:
    return (
        dashboard.AnnotationQuery()
        .name("Alerts")
        .datasource(PROMETHEUS)
        .enable(True)
        .icon_color(BAD)
        .expr('ALERTS{alertname=~"Rollscope.+", alertstate="firing", run=~"$run"}')
    )


def _others() -> dashboard.DashboardLink:
    link = dashboard.DashboardLink("Dashboards").type(DashboardLinkType.DASHBOARDS).tags([_TAG])
    return link.as_dropdown(True).include_vars(True).keep_time(True).icon("external link")


def _page() -> dashboard.DashboardLink:
    link = dashboard.DashboardLink("Rollscope").type(DashboardLinkType.LINK)
    link.url("http://${server:raw}/").icon("external link")
    return link.target_blank(True).tooltip("The page, with every session")
