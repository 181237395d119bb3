"""Metric calls, made fit to be added up: names and labels become text, values become floats.

A value that is no number is told and left out. In particular, a tensor is not asked for its value:
that may wait for a GPU.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

from rollscope.instrument.guard import tell_once
from rollscope.instrument.sanitise import clean_text, plain_number
from rollscope.metrics.aggregate import Sample
from rollscope.model.kinds import MetricType

__all__ = ["clean_samples"]

_TEXT_BYTES: Final = 512


def clean_samples(calls: Iterable[tuple[MetricType, Any, dict[str, Any], Any]]) -> Iterator[Sample]:
    """Give what can be added up, in order; fewer than were called if some are no numbers."""
    for type_, name, labels, value in calls:
        number = value if type(value) is float else plain_number(value)
        if number is None:
            _tell_no_number(name, value)
            continue
        texts = {clean_text(k, _TEXT_BYTES): clean_text(v, _TEXT_BYTES) for k, v in labels.items()}
        yield type_, clean_text(name, _TEXT_BYTES), texts, _as_float(number)


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _tell_no_number(name: object, value: object) -> None:
    shown, kind = clean_text(name, 100), type(value)
    tell_once(
        f"no-number:{shown}",
        "Rollscope cannot add the value of type %s.%s to the metric %r; give it a number, "
        "such as tensor.item()",
        kind.__module__,
        kind.__qualname__,
        shown,
    )
