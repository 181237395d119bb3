"""Counters of Chrome traces, which tell what something stands at, as gauges."""

import math
from typing import Final

from rollscope.importing.chrome_events import ChromeEvent, key_of, name_of
from rollscope.model.batch import Metric
from rollscope.model.kinds import MetricType
from rollscope.otlp.aliases import first_number

__all__ = ["metrics_of"]

_MOST_SERIES: Final = 64
"""Of one event."""
_PLAIN: Final = "value"


def metrics_of(event: ChromeEvent) -> list[Metric]:
    """Give one gauge for each number of a counter; its key is the label `series`."""
    labels = {} if event.own.get("id") is None else {"id": str(key_of(event.own["id"]))}
    made = []
    for key, value in list(event.args.items())[:_MOST_SERIES]:
        number = first_number(value)
        if number is None or abs(number) > 1e308 or not math.isfinite(number):
            continue
        series = name_of(key)
        told = labels if series == _PLAIN else {**labels, "series": series}
        made.append(Metric(MetricType.GAUGE, event.name or "unnamed", told, float(number)))
    return made
