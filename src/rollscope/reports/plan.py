"""Which questions a report answers: what its pages ask, and how that is asked of the run."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, get_args
from urllib.parse import quote

import msgspec

from rollscope.answers.hosts import HostGrouping
from rollscope.answers.hotspots import HotspotGrouping
from rollscope.answers.phases import Grouping
from rollscope.answers.questions import QUESTIONS
from rollscope.answers.scope import StepScope

__all__ = ["MOST_METRICS", "Asked", "about_metrics", "about_run", "about_step", "key_of"]

MOST_METRICS: Final = 40
_LAST: Final = ("20", "50", "200")
"""Of how many steps the page of all steps tells."""
_GROUPS_SHOWN: Final = "20"
_TASKS_SHOWN: Final = ("50", "200", "1000")
_TRACK_POINTS: Final = "600"


class Asked(msgspec.Struct, frozen=True):
    """One question of the report."""

    name: str
    given: Mapping[str, str]
    """What the page asks it with."""
    truly: Mapping[str, str]
    """What the run is asked with: the page knows of no steps but those in the report."""

    @property
    def key(self) -> str:
        """What the answer is found by."""
        return key_of(self.name, self.given)


def key_of(name: str, given: Mapping[str, str]) -> str:
    """Name a question with its parameters, those that say nothing new left out."""
    usual = {one.name: one.default for one in QUESTIONS[name].parameters}
    told = {key: value for key, value in sorted(given.items()) if value != usual.get(key)}
    texts = (f"{key}={quote(value, safe=_AS_IS)}" for key, value in told.items() if value)
    return f"{name}?{'&'.join(texts)}".rstrip("?")


_AS_IS: Final = "!~*'()"
"""What browsers leave as it is, besides letters and digits."""


def about_run(scope: StepScope, steps: Sequence[int]) -> Iterator[Asked]:
    """Give the questions about all of it."""
    for name in ("overview", "now", "health", "stuck", "metrics"):
        yield Asked(name, {}, {})
    for by in get_args(HostGrouping):
        yield Asked("hosts", {"by": by}, {"by": by})
    within = {"scope": scope.text}
    for name in ("errors", "facets", "scatter"):
        yield Asked(name, {}, within)
    for limit in _TASKS_SHOWN:
        yield Asked("tasks", {"limit": limit}, {**within, "limit": limit})
    for by in get_args(Grouping):
        yield Asked("phases", {"by": by}, {**within, "by": by})
    for by in get_args(HotspotGrouping):
        yield Asked("hotspots", {"scope": "all", "by": by}, {**within, "by": by})
    if steps:
        for name in ("steps", "step_series"):
            yield from _about_last(name, scope, len(steps))


def _about_last(name: str, scope: StepScope, count: int) -> Iterator[Asked]:
    """Ask for the longest list first: the others consist of steps that are judged by then."""
    for last in reversed(_LAST):
        # A list that is longer than there are steps is the same list.
        of = next((one for one in _LAST if count <= int(one) <= int(last)), last)
        truly = {"last": of} if scope.is_all else {"scope": scope.text, "last": _LAST[-1]}
        yield Asked(name, {"last": last}, truly)


def about_metrics(names: Sequence[str]) -> Iterator[Asked]:
    """Give the questions about metrics, the first of them only."""
    for name in names[:MOST_METRICS]:
        by_step = {"name": name, "axis": "step"}
        by_time = {"name": name, "axis": "time", "points": _TRACK_POINTS}
        yield Asked("series", by_step, by_step)
        yield Asked("series", by_time, by_time)


def about_step(step: int) -> Iterator[Asked]:
    """Give the questions about one step, its selections apart."""
    this = {"scope": str(step)}
    for name in ("step", "staircase"):
        yield Asked(name, {"step": str(step)}, {"step": str(step)})
    for name in ("services", "durations"):
        yield Asked(name, this, this)
    groups = {**this, "limit": _GROUPS_SHOWN}
    yield Asked("groups", groups, groups)
    for by in get_args(HotspotGrouping):
        yield Asked("hotspots", {**this, "by": by}, {**this, "by": by})
