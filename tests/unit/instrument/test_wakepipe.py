from __future__ import annotations

import os
import resource
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from rollscope.instrument.wakepipe import WakePipe

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def pipe() -> Iterator[WakePipe]:
    pipe = WakePipe()
    yield pipe
    pipe.close()


def test_a_wait_ends_when_it_is_woken(pipe: WakePipe) -> None:
    threading.Timer(0.01, pipe.wake).start()
    started = time.monotonic()
    assert pipe.wait(30) == b""
    assert time.monotonic() - started < 20


def test_a_wake_before_the_wait_is_not_lost(pipe: WakePipe) -> None:
    pipe.wake()
    started = time.monotonic()
    pipe.wait(30)
    assert time.monotonic() - started < 20


def test_a_wait_ends_by_itself(pipe: WakePipe) -> None:
    started = time.monotonic()
    assert pipe.wait(0.02) == b""
    assert time.monotonic() - started >= 0.015


def test_waking_never_blocks_and_one_wait_takes_many_wakes(pipe: WakePipe) -> None:
    for _ in range(100_000):
        pipe.wake()
    while pipe.wait(0) or pipe._poll.poll(0):
        pass
    assert pipe.wait(0.001) == b""


def test_signals_are_told_apart_from_wakes(pipe: WakePipe) -> None:
    before = signal.set_wakeup_fd(pipe.fd, warn_on_full_buffer=False)
    handler = signal.signal(signal.SIGUSR1, lambda number, frame: None)
    try:
        pipe.wake()
        os.kill(os.getpid(), signal.SIGUSR1)
        assert pipe.wait(30) == bytes([signal.SIGUSR1])
    finally:
        signal.signal(signal.SIGUSR1, handler)
        signal.set_wakeup_fd(before)


def test_a_closed_pipe_can_still_be_woken_and_waited_for(pipe: WakePipe) -> None:
    pipe.close()
    pipe.close()
    assert pipe.fd == -1
    pipe.wake()
    assert pipe.wait(0.001) == b""


def test_a_pipe_that_the_program_closed_is_left_to_its_new_owner(pipe: WakePipe) -> None:
    read_end, write_end = pipe._read, pipe.fd
    os.close(read_end)
    os.close(write_end)
    others = os.open("/dev/null", os.O_RDWR), os.open("/dev/null", os.O_RDWR)
    assert {read_end, write_end} == set(others)  # the numbers have been given away
    pipe.wake()
    assert pipe.wait(0.001) == b""
    pipe.close()
    for fd in others:
        os.close(fd)  # still open, so nothing of it was ours


def test_descriptors_beyond_the_reach_of_select_do(monkeypatch: pytest.MonkeyPatch) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    many = [os.open("/dev/null", os.O_RDONLY)]
    try:
        while many[-1] < 1030:
            many.append(os.dup(many[0]))
        pipe = WakePipe()
        assert pipe._read > 1024
        started = time.monotonic()
        assert pipe.wait(0.02) == b""
        assert time.monotonic() - started >= 0.015
        pipe.wake()
        pipe.wait(30)
        pipe.close()
    finally:
        for fd in many:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
