"""Timelines of open runs: built when a page is about to ask for them, and kept up with the run.

Each is built by a thread of its own, so that the answers which a page needs first do not wait for
it; what is added to the run is taken in afterwards. It is extended by the thread that owns the
run's store, and drawn from by any. One that took long is kept beside the run for the next server.
"""

import asyncio
import threading
import time
from concurrent.futures import Future
from typing import Final

import msgspec

from rollscope.analysis.filters import parse_filter
from rollscope.answers.filtering import to_condition
from rollscope.answers.sessions import matching_sessions
from rollscope.answers.stuck import stuck
from rollscope.server.failures import Failure
from rollscope.server.opened import THREAD_PREFIX, OpenRun
from rollscope.store.embedded import RunStore
from rollscope.timeline import TimelineIndex
from rollscope.timeline.building import span_count
from rollscope.timeline.keeping import has_kept

__all__ = ["current_timeline", "prepare_timeline", "sessions_matching"]

_BUILD_LIMIT_S: Final = 120.0
_MOST_PREPARED: Final = 2_000_000
"""Spans of a run whose timeline is built before it is asked for; a million take about a second."""
_LEAST_KEPT: Final = 200_000
"""Spans of a run whose timeline is worth a file; fewer are placed in a tenth of a second."""
_FIRST_BY: Final = "host"
_JUDGE_EVERY_S: Final = 2.0
_MOST_FILTERS: Final = 16
_MOST_SPANS: Final = 4_000_000
"""In all timelines of a run but the one that is drawn: each span takes about 35 bytes in each."""


class _Kept(msgspec.Struct):
    index: TimelineIndex
    seq: int
    """How far the run had come when the index was last extended."""
    judged_s: float
    """When it was last found out what is stuck."""
    used_s: float


async def current_timeline(run: OpenRun, by: str) -> TimelineIndex:
    """Give the timeline of a run as the run is now.

    Raises:
        QueryError: There is no such grouping.
        Failure: It takes too long to build.
    """
    while ("timeline", by) not in run.extras:
        # Twice, where one that was to be prepared has turned out to be too large for that.
        run.asked_s = time.monotonic()
        await _wait_for(_begin(run, by))
    kept: _Kept | None = run.extras.get(("timeline", by))
    if kept is not None and run.is_current() and kept.seq == run.moment()[0]:
        kept.used_s = time.monotonic()
        return kept.index  # without waiting for the answers that the thread is busy with
    return await run.ask(lambda store: _bring_up(run, store, by), limit_s=_BUILD_LIMIT_S)


async def _wait_for(build: "Future[None]") -> None:
    try:
        await asyncio.wait_for(asyncio.wrap_future(build), _BUILD_LIMIT_S)
    except TimeoutError:
        raise Failure(
            503,
            "The timeline is still being built.",
            "Try again in a moment; it goes on meanwhile.",
            headers={"Retry-After": "1"},
        ) from None


def prepare_timeline(run: OpenRun) -> None:
    """Begin to build what the timeline shows at first, unless that is there or too large."""
    if ("timeline", _FIRST_BY) not in run.extras:
        _begin(run, _FIRST_BY, most_spans=_MOST_PREPARED)


def _begin(run: OpenRun, by: str, *, most_spans: int | None = None) -> "Future[None]":
    """Begin to build a timeline; give the one that is being built if there is one already."""
    begun: dict[str, Future[None]] = run.extras.setdefault("begun", {})
    future = begun.get(by)
    if future is not None:
        return future
    future = begun[by] = Future()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            store = run.store.result()
            built = None
            if most_spans is None or span_count(store) <= most_spans or has_kept(store, by):
                built = _build(run, store, by)
        except Exception as error:
            del begun[by]
            future.set_exception(error)
        else:
            del begun[by]
            future.set_result(None)
            if built is not None:
                _keep(built)

    # A thread of a pool would be waited for when the server ends, however long it takes.
    name = f"{THREAD_PREFIX}timeline-{run.name}"
    threading.Thread(target=work, name=name, daemon=True).start()
    return future


def _keep(index: TimelineIndex) -> None:
    """Write what took long to find out, for the next server."""
    keepsake = index.take_keepsake()
    if keepsake is not None and index.total_spans >= _LEAST_KEPT:
        keepsake.write()


def _build(run: OpenRun, store: RunStore, by: str) -> TimelineIndex:
    with run.standing_still():
        _make_room(run)
        seq, is_alive = run.moment()
        index = TimelineIndex(store, by, stuck=_stuck(store) if is_alive else ())
        # Counted from where the run's own number is, so that one of another server is too old.
        index.changes.number = seq
        now_s = time.monotonic()
        run.extras["timeline", by] = _Kept(index, seq, now_s, now_s)
        return index


def _bring_up(run: OpenRun, store: RunStore, by: str) -> TimelineIndex:
    if ("timeline", by) not in run.extras:
        # It was too large to be prepared, or left again.
        _build(run, store, by).take_keepsake()
    kept: _Kept = run.extras["timeline", by]
    seq, is_alive = run.moment()
    now_s = time.monotonic()
    if kept.seq != seq:
        is_due = is_alive and now_s - kept.judged_s > _JUDGE_EVERY_S
        kept.index.extend(_stuck(store) if is_due else None)
        kept.seq = seq
        kept.judged_s = now_s if is_due else kept.judged_s
    kept.used_s = now_s
    return kept.index


def _make_room(run: OpenRun) -> None:
    """Give up timelines of other groupings, the least used first, if they are too large."""
    kept = {key: one for key, one in list(run.extras.items()) if isinstance(one, _Kept)}
    spans = sum(one.index.total_spans for one in kept.values())
    for key, one in sorted(kept.items(), key=lambda item: item[1].used_s):
        if spans <= _MOST_SPANS:
            return
        del run.extras[key]
        spans -= one.index.total_spans


def _stuck(store: RunStore) -> list[int]:
    found = stuck(store)
    return [row.span_id for row in (*found.rows, *found.outside) if row.is_alarm]


async def sessions_matching(run: OpenRun, text: str) -> frozenset[int]:
    """Give the ids of the sessions that a filter holds for.

    Raises:
        FilterError: It cannot be read.
    """
    wanted = parse_filter(text)

    def find(store: RunStore) -> frozenset[int]:
        known: dict[str, tuple[int, frozenset[int]]] = run.extras.setdefault("filters", {})
        seq = run.moment()[0]
        if text in known and known[text][0] == seq:
            return known[text][1]
        condition = to_condition(wanted, store.dialect, store.now_ns)
        rows = matching_sessions(store, "TRUE", {}, condition)
        found = frozenset(row.span_id for row in rows)
        while len(known) >= _MOST_FILTERS:
            del known[next(iter(known))]
        known[text] = (seq, found)
        return found

    return await run.ask(find)
