"""What one call of a metric costs, beside prometheus_client, burst by burst in turn."""

from __future__ import annotations

import gc
import tempfile
import time
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

import rollscope as rs

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CallCost", "measure_calls"]

_BURST: Final = 20_000
"""A few milliseconds of calls."""


class CallCost(msgspec.Struct):
    """Best CPU times of a call in nanoseconds."""

    name: str
    caller_ns: float
    """Of the calling thread."""
    total_ns: float
    """Of the process, until all is written."""
    rival_ns: float | None
    """Of prometheus_client's labelled call, in the same run."""

    @property
    def ratio(self) -> float | None:
        """What ours costs the caller in terms of the other."""
        return self.caller_ns / self.rival_ns if self.rival_ns else None


class _Pair(NamedTuple):
    name: str
    ours: Callable[[int], None]
    theirs: Callable[[int], None] | None


def measure_calls(repetitions: int) -> list[CallCost]:
    """Measure every kind of call, recorded and not."""
    pairs = _pairs()
    with tempfile.TemporaryDirectory() as folder:
        rs.init(run="calls", dir=folder)
        costs = [_measure(pair, repetitions) for pair in pairs]
        rs.shutdown()
    silent = [
        _measure(_Pair(f"{pair.name}, disabled", pair.ours, None), repetitions) for pair in pairs
    ]
    return costs + silent


def _measure(pair: _Pair, repetitions: int) -> CallCost:
    callers, totals, rivals, bare = [], [], [], []
    for _ in range(repetitions + 1):  # the first warms up
        gc.collect()
        bare.append(_time(_nothing))
        began = time.process_time_ns()
        callers.append(_time(pair.ours))
        rs.flush()
        totals.append(time.process_time_ns() - began)
        if pair.theirs is not None:
            rivals.append(_time(pair.theirs))
    least = min(bare)
    return CallCost(
        name=pair.name,
        caller_ns=(min(callers[1:]) - least) / _BURST,
        total_ns=(min(totals[1:]) - least) / _BURST,
        rival_ns=(min(rivals[1:]) - least) / _BURST if rivals else None,
    )


def _time(burst: Callable[[int], None]) -> int:
    began = time.thread_time_ns()
    burst(_BURST)
    return time.thread_time_ns() - began


def _nothing(count: int) -> None:
    for _ in range(count):
        pass


def _pairs() -> list[_Pair]:
    registry = CollectorRegistry()
    names = ("kind", "worker")
    their_counter = Counter("calls", "Calls.", names, registry=registry)
    their_gauge = Gauge("level", "Level.", names, registry=registry)
    their_histogram = Histogram("seconds", "Seconds.", names, registry=registry)

    def count(number: int) -> None:
        for _ in range(number):
            rs.count("calls", kind="train", worker="w3")

    def gauge(number: int) -> None:
        for _ in range(number):
            rs.gauge("level", 0.5, kind="train", worker="w3")

    def observe(number: int) -> None:
        for _ in range(number):
            rs.observe("seconds", 0.5, kind="train", worker="w3")

    def their_count(number: int) -> None:
        for _ in range(number):
            their_counter.labels(kind="train", worker="w3").inc()

    def their_set(number: int) -> None:
        for _ in range(number):
            their_gauge.labels(kind="train", worker="w3").set(0.5)

    def their_observe(number: int) -> None:
        for _ in range(number):
            their_histogram.labels(kind="train", worker="w3").observe(0.5)

    return [
        _Pair("count, 2 labels", count, their_count),
        _Pair("gauge, 2 labels", gauge, their_set),
        _Pair("observe, 2 labels", observe, their_observe),
    ]
