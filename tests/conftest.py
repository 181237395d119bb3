"""What every test starts from and must leave behind: no settings, no recorder, no leaks."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, TypeVar

import hypothesis
import pytest
import uvloop

import rollscope
from rollscope.instrument.guard import forget_told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

# No deadline: other work on the machine must not fail a test. The same cases each time, so that a
# red run is the fault of the change at hand; `make fuzz` looks for new ones.
for _name, _cases, _is_fixed in (("rollscope", 75, True), ("fuzz", 300, False)):
    hypothesis.settings.register_profile(
        _name, deadline=None, max_examples=_cases, derandomize=_is_fixed
    )
hypothesis.settings.load_profile("rollscope")

_CALLERS = ("TRACEPARENT", "TRACESTATE", "BAGGAGE", "COLUMNS")
_SETTLE_S = 20.0
"""How long threads and descriptors that are on their way out may take; only a leak takes it."""


@pytest.fixture(scope="session", autouse=True)
def first_uvloop() -> None:
    """Make uvloop open what it keeps for good with its first loop: libuv's pipe for signals."""
    uvloop.new_event_loop().close()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the caller's settings away, and let internal faults raise instead of being logged."""
    for name in os.environ:
        if name.startswith("ROLLSCOPE") or name in _CALLERS:
            monkeypatch.delenv(name)
    monkeypatch.setenv("ROLLSCOPE_RAISE", "1")


@pytest.fixture(autouse=True)
def no_leaks(clean_environment: None) -> Iterator[None]:
    """Fail a test that leaves a recorder's thread or a file descriptor behind."""
    forget_told()
    threads_before = set(_recorder_threads())
    files_before = _open_files()
    yield
    rollscope.shutdown()
    leaked_threads = _settled(lambda: set(_recorder_threads()) - threads_before)
    assert not leaked_threads, f"left running: {sorted(t.name for t in leaked_threads)}"
    leaked_files = _settled(lambda: _open_files().items() - files_before.items())
    assert not leaked_files, f"left open: {sorted(leaked_files)}"


def _recorder_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("rollscope-")]


def _open_files() -> dict[int, str]:
    """Give the open descriptors with what they stand for, by the kernel's account."""
    files: dict[int, str] = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            files[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # the descriptor with which the folder itself was listed
            continue
    tracker = _resource_tracker_fd()
    return {fd: target for fd, target in files.items() if fd != tracker}


def _resource_tracker_fd() -> int | None:
    """Give the pipe to multiprocessing's helper process, which it keeps for good by design."""
    module = sys.modules.get("multiprocessing.resource_tracker")
    return None if module is None else module._resource_tracker._fd  # it tells in no other way


def _settled(leaked: Callable[[], set[T]]) -> set[T]:
    """Look for leaks until there are none or the time is up; garbage is collected first."""
    deadline = time.monotonic() + _SETTLE_S
    while (found := leaked()) and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    return found
