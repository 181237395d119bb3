"""Calls of metrics as families named `<namespace>_<name>`, as RL-Insight's hub shows them.

No call is lost to its name: where two names, two kinds or two labels would become one, the later
one gets an ending of its own. For one thread.
"""

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rollscope.instrument.sanitise import clean_text, plain_number
from rollscope.integrations.rl_insight.state import COUNT, GAUGE, OBSERVE
from rollscope.metrics.families import Distribution, Exposed, Family, FamilyKind, Point

__all__ = ["Call", "Registry"]

Call = tuple[int, str, Any, dict[str, Any], str]
"""code, name, value, labels, documentation."""
_TIMES: Final = (
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0,
    1200.0, 1800.0, 3600.0, 7200.0, 10800.0,
)  # fmt: skip
"""Upper bounds in seconds, up to three hours: a rollout must not end in the last bucket."""
_MOST_SERIES: Final = 2_000
_TEXT_BYTES: Final = 1_024
_UNFIT: Final = re.compile(r"[^a-zA-Z0-9_:]")
_UNFIT_LABEL: Final = re.compile(r"[^a-zA-Z0-9_]")
_KINDS: Final = {
    COUNT: FamilyKind.COUNTER,
    GAUGE: FamilyKind.GAUGE,
    OBSERVE: FamilyKind.HISTOGRAM,
}
_LabelSet = tuple[tuple[str, str], ...]


class _Metric:
    """One name of one kind, with all its series."""

    def __init__(self, name: str, kind: FamilyKind, text: str, bounds: tuple[float, ...]) -> None:
        self.name, self.kind, self.text, self.bounds = name, kind, text, bounds
        self.values: dict[_LabelSet, float] = {}
        self.counts: dict[_LabelSet, list[int]] = {}

    def take(self, labels: _LabelSet, value: float) -> None:
        if self.kind is FamilyKind.GAUGE:
            self.values[labels] = value
            return
        self.values[labels] = self.values.get(labels, 0.0) + value
        if self.kind is FamilyKind.HISTOGRAM:
            counts = self.counts.setdefault(labels, [0] * (len(self.bounds) + 1))
            counts[bisect_left(self.bounds, value)] += 1

    def expose(self) -> Exposed:
        names = tuple(sorted({name for labels in self.values for name, _ in labels}))
        points = []
        for labels, value in self.values.items():
            given = dict(labels)
            shown = tuple(given.get(name, "") for name in names)
            counts = self.counts.get(labels)
            points.append(Point(shown, value if counts is None else Distribution(counts, value)))
        family = Family(
            name=self.name, kind=self.kind, help=self.text, labels=names, bounds=self.bounds
        )
        return Exposed(family, points)


class Registry:
    """What all metrics of this process stand at."""

    def __init__(self, namespace: str, buckets: Mapping[str, tuple[float, ...]]) -> None:
        """Begin empty.

        Args:
            namespace: What all names begin with.
            buckets: Upper bounds by name, where they are not the usual ones.
        """
        self._prefix = f"{namespace}_" if namespace else ""
        self._buckets = buckets
        self._metrics: dict[tuple[int, str], _Metric] = {}
        self._taken: set[str] = set()
        self._series = 0
        self.refused: Counter[str] = Counter()
        """Calls that are not shown, by reason."""

    def take(self, calls: Iterable[Call]) -> None:
        """Take calls, in their order."""
        for code, name, value, labels, text in calls:
            number = plain_number(value)
            if number is None:
                self.refused["no_number"] += 1
            elif code != GAUGE and (not math.isfinite(number) or (code == COUNT and number < 0)):
                self.refused["amount"] += 1
            else:
                self._put(code, clean_text(name, 200), float(number), _label_set(labels), text)

    def expose(self) -> list[Exposed]:
        """Give all families."""
        shown = [metric.expose() for metric in self._metrics.values()]
        if self.refused:
            family = Family(
                name=f"{self._prefix}refused_calls_total",
                kind=FamilyKind.COUNTER,
                help="Calls of metrics that are not shown here, by reason.",
                labels=("reason",),
            )
            points = [Point((why,), float(count)) for why, count in self.refused.items()]
            shown.append(Exposed(family, points))
        return shown

    def _put(self, code: int, name: str, value: float, labels: _LabelSet, text: str) -> None:
        metric = self._metrics.get((code, name))
        if metric is None:
            if self._series >= _MOST_SERIES:
                self.refused["series"] += 1
                return
            metric = self._metrics[code, name] = self._new(code, name, text)
        if labels not in metric.values:
            if self._series >= _MOST_SERIES:
                self.refused["series"] += 1
                return
            self._series += 1
        metric.take(labels, value)

    def _new(self, code: int, name: str, text: object) -> _Metric:
        kind = _KINDS[code]
        bounds = self._buckets.get(name, _TIMES) if code == OBSERVE else ()
        told = clean_text(text, _TEXT_BYTES) if text else f"{kind.value.capitalize()} {name}"
        return _Metric(self._free_name(kind, name), kind, told, bounds)

    def _free_name(self, kind: FamilyKind, name: str) -> str:
        fit = _UNFIT.sub("_", self._prefix + name) or "_"
        fit = f"_{fit}" if fit[0].isdigit() else fit
        end = "_total" if kind is FamilyKind.COUNTER else ""
        stem = fit.removesuffix(end)
        tries = [stem, f"{stem}_{kind.value}", *(f"{stem}_{kind.value}_{n}" for n in range(2, 100))]
        whole = next((one + end for one in tries if one + end not in self._taken), stem + end)
        self._taken.add(whole)
        return whole


def _label_set(labels: Mapping[str, Any]) -> _LabelSet:
    """Make text of labels, and names that Prometheus takes; in one order, whoever calls."""
    found: dict[str, str] = {}
    for name, value in sorted((str(name), value) for name, value in labels.items()):
        fit = _UNFIT_LABEL.sub("_", name) or "_"
        fit = f"_{fit}" if fit[0].isdigit() else fit
        while fit in found:
            fit += "_"
        found[fit] = clean_text(value, _TEXT_BYTES)
    return tuple(found.items())
