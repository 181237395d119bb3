"""Panels for what a program records by itself, whose names are not known beforehand."""

from typing import Final

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models.dashboard import Panel, VariableModel

from dashboards.frame import chosen
from dashboards.panels import lines
from dashboards.queries import Query, of_run
from rollscope.exposing.catalogue import USER_PREFIX

__all__ = ["recorded_choices", "recorded_panels"]

_NAMES: Final = f'label_values({{__name__=~"{USER_PREFIX}.+", run=~"$run"}}, __name__)'


def recorded_choices() -> list[Builder[VariableModel]]:
    """Let one gauge, one counter and one histogram be chosen, by the ends of their names."""
    return [
        chosen(
            *("gauge", "Gauge", _NAMES, "A gauge of the program."),
            is_multi=False,
            regex="/^(?!.*_(total|bucket|count|sum|created)$).*$/",
        ),
        chosen(
            *("counter", "Counter", _NAMES, "A counter of the program."),
            is_multi=False,
            regex="/^.*_total$/",
        ),
        chosen(
            *("distribution", "Distribution", _NAMES, "A histogram of the program."),
            is_multi=False,
            regex="/^(.*)_bucket$/",
        ),
    ]


def recorded_panels() -> list[Builder[Panel]]:
    """Draw what was chosen."""
    return [
        lines(
            "Gauge: $gauge",
            "What the program has set with rs.gauge, apart for each process.",
            "short",
            Query('{__name__="$gauge", run=~"$run"}', of_run("{{role}} {{rank}}")),
            page="steps",
        ),
        lines(
            "Counter: $counter",
            "How fast what the program counts with rs.count rises, by second.",
            "short",
            Query('sum by (run) (rate({__name__="$counter", run=~"$run"}[5m]))'),
            page="steps",
        ),
        lines(
            "Distribution: $distribution",
            "What the program tells with rs.observe: the middle value and nearly the highest.",
            "short",
            Query(_quantile(0.5), of_run("p50")),
            Query(_quantile(0.95), of_run("p95")),
            page="steps",
        ),
    ]


def _quantile(share: float) -> str:
    selected = '{__name__="${distribution}_bucket", run=~"$run"}'
    return f"histogram_quantile({share}, sum by (run, le) (rate({selected}[5m])))"
