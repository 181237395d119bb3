"""When a target that was registered by request is let go of: nobody has to come and remove it."""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Final

import msgspec

from rollscope.collect.targets import Target
from rollscope.collect.watching import Watch
from rollscope.collect.watchlist import TargetKey, key_of

__all__ = ["USELESS_S", "Expiry", "GoneTarget"]

USELESS_S: Final = 3600.0
"""How long a target may be of no use."""
_MOST_GONE: Final = 50


class GoneTarget(msgspec.Struct, kw_only=True):
    """A target that was let go of."""

    url: str
    run: str | None
    why: str
    gone_ns: int


class Expiry:
    """Notes since when each target has been of no use; for the event loop."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, after_s: float = USELESS_S
    ) -> None:
        """Know nothing yet.

        Args:
            clock: Gives seconds.
            after_s: How long a target may be of no use.
        """
        self.gone: deque[GoneTarget] = deque(maxlen=_MOST_GONE)
        """The last ones that were let go of."""
        self._clock = clock
        self._after_s = after_s
        self._since_s: dict[TargetKey, float] = {}

    def look(
        self, watches: Iterable[Watch], chosen: str | None, active: Collection[str]
    ) -> list[tuple[Target, str]]:
        """See which are to go now, and why.

        Args:
            watches: All that were registered.
            chosen: The run that is meant where none is named.
            active: The runs that are being recorded.
        """
        now_s = self._clock()
        since_s, going = self._since_s, []
        self._since_s = {}
        for watch in watches:
            why = _why_useless(watch, chosen, active)
            if not why:
                continue
            key = key_of(watch.target)
            began_s = self._since_s[key] = since_s.get(key, now_s)
            if now_s - began_s >= self._after_s:
                going.append((watch.target, f"{why} for {_said(self._after_s)}"))
        self.gone.extend(_gone(target, why) for target, why in going)
        return going

    def remaining_s(self, target: Target) -> float | None:
        """Say when a target goes if it stays of no use; None if it is of use."""
        began_s = self._since_s.get(key_of(target))
        return None if began_s is None else max(self._after_s - (self._clock() - began_s), 0.0)


def _why_useless(watch: Watch, chosen: str | None, active: Collection[str]) -> str:
    run = watch.target.run or chosen
    is_asked = run is not None and run in active
    if watch.target.run is not None and not is_asked:
        return f"nothing was recorded into its run {watch.target.run!r}"
    return "it was down" if is_asked and watch.is_up is False else ""


def _gone(target: Target, why: str) -> GoneTarget:
    return GoneTarget(url=target.address.url, run=target.run, why=why, gone_ns=time.time_ns())


def _said(seconds: float) -> str:
    return "an hour" if seconds == USELESS_S else f"{seconds:g} s"
