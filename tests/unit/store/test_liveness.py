from __future__ import annotations

import os
import subprocess

import msgspec
import pytest

from rollscope.model.batch import ProcessHeader
from rollscope.model.records import ProcessRecord
from rollscope.store.liveness import is_alive
from tests.builders import SECOND, dead_header, make_batch, make_header, records_of, remote_header

NOW = 1_700_000_000 * SECOND


def record(header: ProcessHeader) -> ProcessRecord:
    (found,) = records_of(make_batch(header=header))
    assert isinstance(found, ProcessRecord)
    return found


def test_on_the_same_host_the_kernel_knows() -> None:
    assert is_alive(record(make_header()), last_seen_ns=0, now_ns=NOW)
    assert not is_alive(record(dead_header()), last_seen_ns=NOW, now_ns=NOW)


def test_a_child_lives_until_it_has_ended() -> None:
    from rollscope.instrument.process import start_ticks

    child = subprocess.Popen(["sleep", "60"])
    process = record(make_header(pid=child.pid, start_ticks=start_ticks(child.pid)))
    assert is_alive(process, 0, NOW)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(process, NOW, NOW)
    child.wait()
    assert not is_alive(process, NOW, NOW)


@pytest.mark.parametrize(
    "header",
    [remote_header(), make_header(pid_namespace=1), make_header(start_ticks=0)],
    ids=["other host", "other container", "no /proc"],
)
@pytest.mark.parametrize(
    ("heartbeat_s", "silence_s", "alive"),
    [(1.0, 14.9, True), (1.0, 15.1, False), (60.0, 179.0, True), (60.0, 181.0, False)],
)
def test_from_elsewhere_only_silence_tells(
    header: ProcessHeader, heartbeat_s: float, silence_s: float, alive: bool
) -> None:
    process = msgspec.structs.replace(record(header), heartbeat_s=heartbeat_s)
    assert is_alive(process, NOW - round(silence_s * 1e9), NOW) is alive


def test_a_clock_that_is_ahead_of_ours_counts_as_alive() -> None:
    assert is_alive(record(remote_header()), last_seen_ns=NOW + 3600 * SECOND, now_ns=NOW)
