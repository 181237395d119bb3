"""What is measured of a subject, each in a process of its own."""

from __future__ import annotations

import gc
import os
import random
import statistics
import time
from typing import TYPE_CHECKING, Any, Final

from running.subjects import NotOffered
from running.works import nap, noop, park

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from running.subjects import Subject

    Make = Callable[[int | None], Subject]

__all__ = ["MEASURES"]

_BURST: Final = 20_000
_WINDOW: Final = 1_024
_PARKED: Final = 20_000
_WATCH_S: Final = 3.0
_SHORTEST_S: Final = 2.0
_LONGEST_S: Final = 6.0


def burst(make: Make) -> dict[str, float]:
    """Count no-op tasks a second, 20,000 handed over at once."""
    with _Closing(make(None)) as subject:
        _run_burst(subject, 2_000)
        walls = [_run_burst(subject, _BURST) for _ in range(3)]
    return {"burst_per_s": _BURST / statistics.median(walls)}


def _run_burst(subject: Subject, count: int) -> float:
    gc.collect()
    submit = subject.submit
    began = time.perf_counter()
    for _ in range(count):
        submit(noop)
    subject.take(count)
    return time.perf_counter() - began


def window(make: Make) -> dict[str, float]:
    """Count no-op tasks a second with 1,024 outstanding: one is taken, one handed over."""
    with _Closing(make(None)) as subject:
        _run_window(subject, 2 * _WINDOW)
        walls = [_run_window(subject, _BURST) for _ in range(3)]
    return {"window_per_s": _BURST / statistics.median(walls)}


def _run_window(subject: Subject, count: int) -> float:
    gc.collect()
    submit, take = subject.submit, subject.take
    for _ in range(_WINDOW):
        submit(noop)
    began = time.perf_counter()
    for _ in range(count):
        take(1)
        submit(noop)
    wall = time.perf_counter() - began
    take(_WINDOW)
    return wall


def idle_latency(make: Make) -> dict[str, float]:
    """Time one task from submit to its value, with nothing else there."""
    with _Closing(make(None)) as subject:
        return {"idle_us": _latency_us(subject)}


def busy_latency(make: Make) -> dict[str, float]:
    """Time one task from submit to its value, with one other running."""
    with _Closing(make(None)) as subject:
        subject.submit(park)
        return {"busy_us": _latency_us(subject)}


def parked_latency(make: Make) -> dict[str, float]:
    """Time one task from submit to its value, with 20,000 others parked."""
    with _Closing(make(None)) as subject:
        _park(subject, _PARKED)
        return {"parked_us": _latency_us(subject)}


def _latency_us(subject: Subject) -> float:
    """Give the median; as many as fit in two seconds, since some take 50 ms each."""
    times: list[float] = []
    ends_at = time.perf_counter() + 2
    while len(times) < 4_000 and (len(times) < 20 or time.perf_counter() < ends_at):
        began = time.perf_counter()
        subject.submit(noop)
        subject.take(1)
        times.append(time.perf_counter() - began)
    return statistics.median(times[len(times) // 5 :]) * 1e6


def flow_1k(make: Make) -> dict[str, float]:
    """Tell CPU per finished task with 1,000 in flight."""
    cpu_us, _ = _flow(make, 1_000)
    return {"cpu_1k_us": cpu_us}


def flow_10k(make: Make) -> dict[str, float]:
    """Tell CPU per finished task, and from finish to caller, with 10,000 in flight."""
    cpu_us, late_us = _flow(make, 10_000)
    return {"cpu_10k_us": cpu_us, "finish_to_caller_us": late_us}


def _flow(make: Make, in_flight: int) -> tuple[float, float]:
    """Keep tasks of some seconds in flight; each finished one is replaced.

    10,000 of them end 2,500 times a second, which leaves the slower subjects air: at more, a
    backlog would be all that is measured.
    """
    rng = random.Random(7)
    with _Closing(make(None)) as subject:
        for _ in range(in_flight):  # as if found on their way
            subject.submit(nap, rng.uniform(0, _LONGEST_S))
        _replace(subject, rng, 1.5)
        cpu = time.process_time()
        late = _replace(subject, rng, _WATCH_S)
        cpu = time.process_time() - cpu
    return cpu / len(late) * 1e6, statistics.median(late) * 1e6


def _replace(subject: Subject, rng: random.Random, seconds: float) -> list[float]:
    late = []
    ends_at = time.perf_counter() + seconds
    while (now := time.perf_counter()) < ends_at:
        (value,) = subject.take(1)
        now = time.perf_counter()
        late.append(now - value[1])
        subject.submit(nap, rng.uniform(_SHORTEST_S, _LONGEST_S))
    return late


def slots(make: Make) -> dict[str, float]:
    """Tell which share of their time slots are in use."""
    return {
        "slots_2_of_20ms": _slot_use(make, 2, 0.02, 100),
        "slots_4_of_100ms": _slot_use(make, 4, 0.1, 20),
        "slots_64_of_100ms": _slot_use(make, 64, 0.1, 20),
    }


def _slot_use(make: Make, count: int, seconds: float, waves: int) -> float:
    with _Closing(make(count)) as subject:
        for _ in range(count * waves):
            subject.submit(nap, seconds)
        spans = subject.take(count * waves)
    # Up to the last start: after it slots are free because there is no work left for them.
    first, last = min(begin for begin, _ in spans), max(begin for begin, _ in spans)
    used = sum(min(end, last) - begin for begin, end in spans)
    return float(used / (count * (last - first)))


def idle_cpu(make: Make) -> dict[str, float]:
    """Tell how much of a core 20,000 parked tasks cost."""
    with _Closing(make(None)) as subject:
        _park(subject, _PARKED)
        time.sleep(1)  # what follows a burst, as a flush of records, is over then
        began, cpu = time.perf_counter(), time.process_time()
        time.sleep(_WATCH_S)
        share = (time.process_time() - cpu) / (time.perf_counter() - began)
    return {"idle_cpu": share}


def queued_memory(make: Make) -> dict[str, float]:
    """Weigh a task that waits to be started."""
    with _Closing(make(None)) as subject:
        pause, _ = _pauses(subject)
        _run_burst(subject, 100)
        pause()
        return {"queued_bytes": _weigh(lambda: _submit(subject, 50_000)) / 50_000}


def parked_memory(make: Make) -> dict[str, float]:
    """Weigh a task that has started and waits."""
    with _Closing(make(None)) as subject:
        _park(subject, 100)
        return {"parked_bytes": _weigh(lambda: _park_for_long(subject)) / _PARKED}


def _park_for_long(subject: Subject) -> None:
    _park(subject, _PARKED)
    time.sleep(1)  # who records what is parked has seen it by then, and keeps something of it


def _weigh(act: Callable[[], object]) -> float:
    gc.collect()
    before = _resident_bytes()
    act()
    gc.collect()
    return _resident_bytes() - before


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def resume(make: Make) -> dict[str, float]:
    """Time from resume to the start of a task that waited for it."""
    with _Closing(make(None)) as subject:
        pause, go_on = _pauses(subject)
        times = []
        for _ in range(15):
            pause()
            subject.submit(nap, 0)
            time.sleep(0.02)  # everyone sees the pause
            began = time.perf_counter()
            go_on()
            ((start, _),) = subject.take(1)
            times.append(start - began)
    return {"resume_us": statistics.median(times) * 1e6}


def _pauses(subject: Any) -> tuple[Callable[[], None], Callable[[], None]]:  # noqa: ANN401
    """Give what pauses a subject and what resumes it; not every subject can."""
    if not hasattr(subject, "pause"):
        raise NotOffered("cannot be paused")
    return subject.pause, subject.resume


def _submit(subject: Subject, count: int) -> None:
    submit = subject.submit
    for _ in range(count):
        submit(park)


def _park(subject: Subject, count: int) -> None:
    """Park tasks; a task behind them tells when all have started."""
    _submit(subject, count)
    subject.submit(noop)
    subject.take(1)


class _Closing:
    """Closes a subject, if it can be closed after what was done to it."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def __enter__(self) -> Subject:
        return self._subject

    def __exit__(self, *error: object) -> None:
        self._subject.close()


def _all() -> Iterator[Callable[[Make], dict[str, float]]]:
    yield from (burst, window, idle_latency, busy_latency, parked_latency, flow_1k, flow_10k)
    yield from (slots, idle_cpu, queued_memory, parked_memory, resume)


MEASURES: Final = {measure.__name__: measure for measure in _all()}
