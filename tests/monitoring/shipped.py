"""The rules and dashboards that the package ships, as tests look at them."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "DASHBOARDS",
    "RULES",
    "Asked",
    "alerts",
    "asked",
    "dashboards",
    "metric_names",
    "panels",
    "placed",
    "recorded",
]

_STATIC = Path(str(files("rollscope.stack"))) / "static"
RULES = _STATIC / "rules" / "rollscope.yml"
DASHBOARDS = _STATIC / "dashboards"
_WORD = re.compile(r"[a-zA-Z_][\w:]*")
_TEXT = re.compile(r'"[^"]*"')
_NO_METRIC = re.compile(
    r"\{[^}]*\}|\[[^\]]*\]|\b(?:by|on|without|ignoring)\s*\([^)]*\)|\boffset\s+\w+"
)
_NOT_NAMES = frozenset(
    {"and", "or", "unless", "sum", "avg", "min", "max", "rate", "increase", "avg_over_time"}
) | {"histogram_quantile", "absent"}

Form = dict[str, Any]


class Asked(NamedTuple):
    """One query of one panel."""

    dashboard: str
    panel: str
    query: str
    has_exemplars: bool


def dashboards() -> dict[str, Form]:
    """Give what the files hold, by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(DASHBOARDS.glob("*.json"))}


def panels(dashboard: Form) -> Iterator[Form]:
    """Give the panels that show something: rows only have titles."""
    return (panel for panel in placed(dashboard) if panel["type"] != "row")


def placed(dashboard: Form) -> Iterator[Form]:
    """Give everything that has a place, also what is within a row that is folded up."""
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", ())


def asked() -> list[Asked]:
    """Give all queries of Prometheus, those of variables and annotations left out."""
    return [
        Asked(name, panel["title"], target["expr"], target["exemplar"])
        for name, dashboard in dashboards().items()
        for panel in panels(dashboard)
        for target in panel["targets"]
        if target["datasource"]["type"] == "prometheus"
    ]


def _rules() -> list[Form]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> dict[str, Form]:
    """Give the alerts by name."""
    return {rule["alert"]: rule for rule in _rules() if "alert" in rule}


def recorded() -> dict[str, str]:
    """Give what is recorded: the queries by name."""
    return {rule["record"]: rule["expr"] for rule in _rules() if "record" in rule}


def metric_names(query: str) -> set[str]:
    """Give the names of the series that a query is about."""
    return set(_WORD.findall(_NO_METRIC.sub(" ", _TEXT.sub("", query)))) - _NOT_NAMES
