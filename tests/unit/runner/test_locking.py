from __future__ import annotations

import sys
import threading

import pytest

from rollscope.runner.locking import BargingLock

PATIENCE_S = 20.0


def test_only_one_thread_at_a_time_has_it() -> None:
    lock = BargingLock()
    inside: list[int] = []
    most = 0

    def enter() -> None:
        nonlocal most
        for _ in range(500):
            with lock:
                inside.append(1)
                most = max(most, len(inside))
                inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
    finally:
        sys.setswitchinterval(interval_s)
    assert most == 1
    assert lock.try_acquire(False)


def test_who_finds_it_taken_for_long_sleeps_until_it_is_free() -> None:
    lock = BargingLock()
    began, got_it = threading.Event(), threading.Event()

    def want() -> None:
        began.set()
        with lock:
            got_it.set()

    lock.acquire()
    thread = threading.Thread(target=want)
    thread.start()
    assert began.wait(PATIENCE_S)
    assert not got_it.wait(0.05)
    lock.release()
    assert got_it.wait(PATIENCE_S)
    thread.join(PATIENCE_S)


def test_an_error_under_it_frees_it() -> None:
    lock = BargingLock()
    with pytest.raises(ValueError, match="inside"), lock:
        raise ValueError("inside")
    assert lock.try_acquire(False)
