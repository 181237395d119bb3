"""Answers that several pages share: each is computed once, and at most once a second.

One that takes long to compute is kept longer, so that no answer keeps a core busy by itself.

Used by the event loop only, so nothing here needs a lock.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from rollscope.server.bodies import Body

__all__ = ["AnswerCache", "Moment"]

_FRESH_S: Final = 0.9
"""Less than the second that a page leaves between two questions, or every other one is in vain."""
_REST: Final = 1
"""After an answer nothing is done for it for so many times as long as it took."""
_SOON_S: Final = 0.05
_MOST_BYTES: Final = 64 * 1024 * 1024

Moment = tuple[int, bool]
"""How far a run has come, and whether it goes on."""


class _Kept(msgspec.Struct):
    body: Body
    good_until_s: float
    moment: Moment


class AnswerCache:
    """What was answered of one run."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, most_bytes: int = _MOST_BYTES
    ) -> None:
        self._clock = clock
        self._most_bytes = most_bytes
        self._kept: OrderedDict[tuple[str, ...], _Kept] = OrderedDict()
        self._bytes = 0
        self._flights: dict[tuple[str, ...], asyncio.Task[Body]] = {}

    async def get(
        self,
        key: tuple[str, ...],
        moment: Callable[[], Moment],
        compute: Callable[[], Awaitable[Body]],
    ) -> Body:
        """Give an answer that is fresh enough, or compute it; who asks meanwhile waits for it."""
        kept = self._kept.get(key)
        if kept is not None and self._is_good(kept, moment()):
            self._kept.move_to_end(key)
            return kept.body
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.ensure_future(self._compute(key, moment, compute))
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._land(key, done))
        # A page that goes away must not take the answer from the others who wait for it.
        return await asyncio.shield(flight)

    def renewed_in_s(self, key: tuple[str, ...], moment: Moment) -> float:
        """Say in how many seconds an answer that its run has left behind is made anew.

        0 if the run has not moved since; a page that was told nothing would keep what it has.
        """
        kept = self._kept.get(key)
        if kept is None or kept.moment == moment:
            return 0.0
        return max(kept.good_until_s - self._clock(), _SOON_S)

    def _is_good(self, kept: _Kept, moment: Moment) -> bool:
        is_settled = kept.moment == moment and not moment[1]
        return is_settled or self._clock() < kept.good_until_s

    def _land(self, key: tuple[str, ...], done: "asyncio.Task[Body]") -> None:
        self._flights.pop(key, None)
        if not done.cancelled():
            done.exception()  # seen, also where nobody waits any more

    async def _compute(
        self,
        key: tuple[str, ...],
        moment: Callable[[], Moment],
        compute: Callable[[], Awaitable[Body]],
    ) -> Body:
        before = moment()
        began_s = self._clock()
        body = await compute()
        self._drop(key)
        made_s = self._clock()
        good_until_s = began_s + max(_FRESH_S, (1 + _REST) * (made_s - began_s))
        self._kept[key] = _Kept(body, good_until_s, before)
        self._bytes += body.size
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))
        return body

    def _drop(self, key: tuple[str, ...]) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._bytes -= kept.body.size
