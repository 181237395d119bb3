"""Queries, as panels take them, and how they choose runs."""

from typing import Final, NamedTuple

from grafana_foundation_sdk.builders import prometheus, tempo
from grafana_foundation_sdk.models.dashboard import DataSourceRef
from grafana_foundation_sdk.models.prometheus import PromQueryFormat, QueryEditorMode

__all__ = [
    "PROMETHEUS",
    "RUNS",
    "SEPARATOR",
    "TEMPO",
    "Query",
    "exemplified",
    "from_prometheus",
    "from_tempo",
    "of_run",
    "quantile",
]

PROMETHEUS: Final = DataSourceRef(type_val="prometheus", uid="rollscope-prometheus")
TEMPO: Final = DataSourceRef(type_val="tempo", uid="rollscope-tempo")
RUNS: Final = 'run=~"$run"'
"""What every selector has."""
SEPARATOR: Final = " · "
"""Between what a line stands for and its run."""


class Query(NamedTuple):
    """What is asked of Prometheus."""

    expr: str
    legend: str = "{{run}}"
    has_exemplars: bool = False


def of_run(name: str) -> str:
    """Name lines by a text, or a label as in `{{phase}}`, and by their run."""
    return f"{name}{SEPARATOR}{{{{run}}}}"


def quantile(share: float, family: str, *by: str, where: str = RUNS, window: str = "5m") -> str:
    """Write a quantile of a histogram, apart for each run and each of the labels."""
    labels = ", ".join(("run", *by, "le"))
    rate = f"rate({family}_bucket{{{where}}}[{window}])"
    return f"histogram_quantile({share}, sum by ({labels}) ({rate}))"


def exemplified(share: float, family: str, *by: str, name: str) -> Query:
    """Ask for a quantile of a histogram, with the sessions that stand for its buckets."""
    return Query(quantile(share, family, *by), of_run(name), has_exemplars=True)


def from_prometheus(
    query: Query, number: int, shape: PromQueryFormat = PromQueryFormat.TIME_SERIES
) -> prometheus.Dataquery:
    """Make a query over the time that is shown; of a table, at its end."""
    made = (
        prometheus.Dataquery()
        .ref_id(chr(ord("A") + number))
        .expr(query.expr)
        .legend_format("{{le}}" if shape is PromQueryFormat.HEATMAP else query.legend)
        .format(shape)
        .exemplar(query.has_exemplars)
        .editor_mode(QueryEditorMode.CODE)
        .datasource(PROMETHEUS)
    )
    return made.instant() if shape is PromQueryFormat.TABLE else made.range()


def from_tempo(text: str, most: int = 20) -> tempo.TempoQuery:
    """Make a search in TraceQL, or ask for the trace of an id."""
    return (
        tempo.TempoQuery()
        .ref_id("A")
        .query_type("traceql")
        .query(text)
        .limit(most)
        .filters([])
        .datasource(TEMPO)
    )
