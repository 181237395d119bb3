"""The series of metrics of one process: found by what was called, made when they are new.

Labels are cleaned and sorted once for each distinct call; after that it is found as it was written.
A process has a bounded number of series. Beyond it, further label sets of a counter or histogram
are added up in one series, so that its sum stays right; a gauge has no sum, and is refused.
"""

from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from rollscope.instrument.calls import COUNT, GAUGE, OBSERVE
from rollscope.instrument.guard import tell_once
from rollscope.instrument.sanitise import clean_text
from rollscope.metrics.tally import Tally
from rollscope.model.kinds import MetricType

__all__ = ["TEXT_BYTES", "CallKey", "Found", "Refusal", "SeriesList", "pack_labels"]

CallKey = tuple[int, str, bytes]
"""Code, name, labels as `pack_labels` gives them."""
_Series = tuple[int, str, tuple[tuple[str, str], ...]]
"""Code, name, labels in order."""

_TYPES: Final = {
    COUNT: MetricType.COUNTER,
    GAUGE: MetricType.GAUGE,
    OBSERVE: MetricType.HISTOGRAM,
}
_NAME_CHARACTERS: Final = 200
TEXT_BYTES: Final = 512
"""Longer labels are cut."""
_SHORT: Final = TEXT_BYTES // 4
"""As many characters have no more bytes."""
_MOST_LABELS: Final = 16
_OTHER: Final = {"series": "other"}
_KEPT_BYTES: Final = 2_000
"""A call with longer labels is not remembered as it was written."""
_WRITTEN_WAYS: Final = 4
"""How many ways of writing a call are remembered for each series, on average."""

pack_labels: Final = msgspec.msgpack.Encoder().encode
"""Gives labels as bytes: a key that tells 1 from True, costs less than any other, and is nothing
that the garbage collector looks at."""
_unpack_labels: Final = msgspec.msgpack.Decoder(dict[str, str | int]).decode


class Refusal(StrEnum):
    """Why a call was not taken as it was; counted as what the process dropped."""

    AMOUNT = "amount"
    """Of a counter, negative or not finite; of a histogram, not finite."""
    FAULT = "fault"
    """Rollscope's own."""
    LABELS = "labels"
    """Too many."""
    NAME = "name"
    """Empty, no text, or too long."""
    NO_NUMBER = "no_number"
    OVERLOAD = "overload"
    """They came faster than they could be added up."""
    SERIES = "series"
    """Beyond the bound on series: added up under `series=other` where that makes sense."""


class Found(NamedTuple):
    """Where a call goes to."""

    tally: Tally | None
    refusal: Refusal | None


class SeriesList:
    """Finds the tally of a call."""

    def __init__(self, most: int) -> None:
        """Begin without any.

        Args:
            most: How many there may be, beside one for the rest of each metric.
        """
        self._most = most
        self._written: dict[CallKey, Found] = {}
        self._series: dict[_Series, Found] = {}
        self._others: dict[tuple[int, str], Found] = {}
        self._label_names: dict[tuple[int, str], tuple[str, ...]] = {}
        """Of each metric, as its first series had them."""

    def find(self, key: CallKey) -> Found:
        """Give the tally of a call, and why the call is refused if it is."""
        return self._written.get(key) or self._look_up(key)

    def _look_up(self, key: CallKey) -> Found:
        code, name, packed = key
        if len(name) > _NAME_CHARACTERS or not name:
            return _refuse_name(name)
        labels = {k: str(v) for k, v in _unpack_labels(packed).items()}
        if len(labels) > _MOST_LABELS:
            return _refuse_labels(name, len(labels))
        # What is short and plain, as most is, needs no cleaning.
        if len(packed) > _SHORT or not "".join((name, *labels, *labels.values())).isascii():
            name = clean_text(name, 2 * TEXT_BYTES)
            cut = {clean_text(k, TEXT_BYTES): clean_text(v, TEXT_BYTES) for k, v in labels.items()}
            labels = cut
        series = (code, name, tuple(sorted(labels.items())))
        found = self._series.get(series)
        if found is None:
            if len(self._series) >= self._most:
                return self._overflow(code, name)
            found = self._make(series)
        if len(packed) <= _KEPT_BYTES:
            if len(self._written) >= self._most * _WRITTEN_WAYS:
                self._written.clear()
            self._written[key] = found
        return found

    def _make(self, series: _Series) -> Found:
        code, name, labels = series
        found = Found(Tally(_TYPES[code], name, dict(labels)), None)
        self._series[series] = found
        names = tuple(key for key, _ in labels)
        if (first := self._label_names.setdefault((code, name), names)) != names:
            _tell_other_labels(name, first, names)
        return found

    def _overflow(self, code: int, name: str) -> Found:
        """Find where a series goes that there is no room for."""
        found = self._others.get((code, name))
        if found is not None:
            return found
        tell_once(
            "metric-series",
            "Rollscope keeps %d series of metrics in a process (setting metric_series), and %r "
            "goes beyond; further label sets are added up under series=other and those of gauges "
            "left out, as is counted; does a label hold an id?",
            self._most,
            name,
        )
        # Only of metrics that have a series: names without end must not take room either.
        can_add = code != GAUGE and (code, name) in self._label_names
        tally = Tally(_TYPES[code], name, dict(_OTHER)) if can_add else None
        found = Found(tally, Refusal.SERIES)
        if can_add:
            self._others[code, name] = found
        return found


def _tell_other_labels(name: str, first: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Say that a metric has come with other labels: no harm, but often a slip of the pen."""
    tell_once(
        f"metric-other-labels:{name}",
        "Rollscope was given the metric %r with %s at first, and now with %s; both are kept, as "
        "series of their own, and a label that one of them lacks is empty in Prometheus; is one "
        "of them a mistake?",
        clean_text(name, 100),
        _say_names(first),
        _say_names(names),
    )


def _say_names(names: tuple[str, ...]) -> str:
    if not names:
        return "no labels"
    listed = clean_text(", ".join(names), 200)
    return f"the label {listed}" if len(names) == 1 else f"the labels {listed}"


def _refuse_name(name: str) -> Found:
    tell_once(
        "metric-name",
        "Rollscope refuses a metric called %.60r; its name must be text of 1 to %d characters",
        name,
        _NAME_CHARACTERS,
    )
    return Found(None, Refusal.NAME)


def _refuse_labels(name: str, count: int) -> Found:
    tell_once(
        f"metric-labels:{name}",
        "Rollscope refuses the metric %r with %d labels; it takes up to %d",
        clean_text(name, 100),
        count,
        _MOST_LABELS,
    )
    return Found(None, Refusal.LABELS)
