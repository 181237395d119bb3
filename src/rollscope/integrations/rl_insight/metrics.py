"""Counters, gauges and histograms: into the run, and to the endpoint that Prometheus asks."""

from typing import Any

from rollscope.integrations.rl_insight import state
from rollscope.integrations.rl_insight.state import COUNT, GAUGE, OBSERVE

__all__ = [
    "metric_count",
    "metric_distribution",
    "metric_gauge",
    "metric_histogram",
    "metric_value",
]


def metric_count(name: str, amount: float = 1.0, documentation: str = "", **labels: Any) -> None:
    """Add to a counter; a negative amount is refused, told once and counted."""
    active = state.current
    if active is not None:
        active.add(COUNT, name, amount, documentation, labels)


def metric_gauge(name: str, value: float, documentation: str = "", **labels: Any) -> None:
    """Set a gauge; the run keeps its value for each step, and over time."""
    active = state.current
    if active is not None:
        active.add(GAUGE, name, value, documentation, labels)


def metric_histogram(name: str, value: float, documentation: str = "", **labels: Any) -> None:
    """Add a value to a histogram."""
    active = state.current
    if active is not None:
        active.add(OBSERVE, name, value, documentation, labels)


metric_value = metric_gauge
metric_distribution = metric_histogram
