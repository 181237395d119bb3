"""What is different about some sessions of a step: the selections that its page offers."""

from collections.abc import Iterator
from typing import Any, Final

from rollscope.reports.plan import Asked
from rollscope.reports.shortids import ShortIds

__all__ = ["selections_of"]

_MOST_NAMED: Final = 200
"""Of those that held the tail: as many as the page names in a link."""
_SLOWEST: Final = 8
"""The decile above whose upper end the slowest tenth lies."""


def selections_of(step: int, answer: dict[str, Any], names: ShortIds) -> Iterator[Asked]:
    """Give the questions about the slowest tenth, the failed, and those that held the tail.

    Args:
        step: Which step.
        answer: What is told of it, as JSON, with the names of the report.
        names: What sessions are called in the report.
    """
    scope = str(step)
    for shown, meant in _filters(answer["parts"], names):
        yield Asked("select", {"scope": scope, "filter": shown}, {"scope": scope, "filter": meant})


def _filters(parts: dict[str, Any], names: ShortIds) -> Iterator[tuple[str, str]]:
    """Give filters as the page writes them, and as the run understands them."""
    for one in parts["waste"]["selection"]:
        if one["measure"] == "duration" and len(one["deciles"]) > _SLOWEST:
            slow = f"ran>{_seconds(one['deciles'][_SLOWEST]['upto'])}s"
            yield slow, slow
    failed = "outcome:failed,timeout"
    yield failed, failed
    holders = parts["tail"]["holders"][:_MOST_NAMED]
    if holders:
        yield f"id:{','.join(holders)}", f"id:{','.join(map(names.whole, holders))}"


def _seconds(ns: float) -> str:
    return f"{max(ns, 0) / 1e9:.9f}".rstrip("0").rstrip(".")
