"""The list of all that is asked for metrics, and who has put each target there."""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, NamedTuple

from rollscope.collect.engineseries import SeriesChoice
from rollscope.collect.targets import MOST_TARGETS, Target
from rollscope.collect.watching import Watch

__all__ = ["Source", "TargetFixed", "TargetKey", "WatchList", "Watched", "key_of"]

TargetKey = tuple[str | None, str]
"""The run and the address."""


class Source(Enum):
    """Who says that a target is to be asked."""

    OPTION = "option"
    FILE = "file"
    REQUEST = "request"


_ELSEWHERE: Final = {
    Source.OPTION: "stands in the options that the server was started with",
    Source.FILE: "stands in the file of targets that the server was started with",
}


class TargetFixed(ValueError):
    """A request is about a target that options or a file have named; the text says so."""


class Watched(NamedTuple):
    """A target on the list."""

    watch: Watch
    source: Source


def key_of(target: Target) -> TargetKey:
    """Give what tells a target from others."""
    return target.run, target.address.url


class WatchList:
    """All targets; for the event loop."""

    def __init__(self, choice: SeriesChoice, every_s: float) -> None:
        """Have none.

        Args:
            choice: Which metrics are kept.
            every_s: How often each target is asked.
        """
        self._choice = choice
        self._every_s = every_s
        self._watched: dict[TargetKey, Watched] = {}

    def __len__(self) -> int:
        return len(self._watched)

    def __iter__(self) -> Iterator[Watched]:
        return iter(list(self._watched.values()))

    def put(self, target: Target, source: Source) -> None:
        """Have a target asked; one with the same run and address is replaced.

        Raises:
            TargetFixed: By request, but options or a file say something else of it.
            ValueError: There are too many.
        """
        key = key_of(target)
        there = self._watched.get(key)
        if there is None and len(self._watched) >= MOST_TARGETS:
            raise ValueError(f"{MOST_TARGETS} targets are asked already")
        if there is not None and there.watch.target == target:
            if source is not Source.REQUEST:
                self._watched[key] = there._replace(source=source)
            return
        if source is Source.REQUEST:
            self._check_changeable(there)
        watch = Watch(target, self._choice, self._every_s)
        self._watched[key] = Watched(watch, source)

    def drop(self, key: TargetKey) -> bool:
        """Have a target asked no more, as a request says; False if it was not asked.

        Raises:
            TargetFixed: Options or a file have named it.
        """
        there = self._watched.get(key)
        self._check_changeable(there)
        return self._watched.pop(key, None) is not None

    def put_listed(self, targets: Iterable[Target]) -> None:
        """Have asked what a file lists now, and what it no longer lists not any more.

        Raises:
            ValueError: There are too many.
        """
        listed = {key_of(target): target for target in targets}
        for key, (_, source) in list(self._watched.items()):
            if source is Source.FILE and key not in listed:
                del self._watched[key]
        for target in listed.values():
            self.put(target, Source.FILE)

    def requested(self) -> list[Target]:
        """Give what was put here by request."""
        return [one.watch.target for one in self if one.source is Source.REQUEST]

    def _check_changeable(self, there: Watched | None) -> None:
        if there is not None and there.source in _ELSEWHERE:
            raise TargetFixed(
                f"{there.watch.target.address.url} {_ELSEWHERE[there.source]}, and is changed there"
            )
