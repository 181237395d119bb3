from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import rollscope
from rollscope.config import Settings
from rollscope.instrument.process import describe_process, pid_namespace, start_ticks
from rollscope.model.clockline import ClockLine


def test_a_header_says_who_records() -> None:
    settings = Settings(role="reward", rank=3, heartbeat_s=2.5)
    header = describe_process(settings, ClockLine(10, 20), b"\1" * 8)
    assert (header.host, header.pid) == (os.uname().nodename, os.getpid())
    assert (header.role, header.rank, header.parent) == ("reward", 3, b"\1" * 8)
    assert (header.started_mono_ns, header.started_ns) == (10, 20)
    assert header.heartbeat_s == 2.5
    assert header.version == rollscope.__version__
    assert sys.version.startswith(header.python)
    assert header.pid_namespace == pid_namespace()
    assert header.start_ticks == start_ticks(os.getpid())


def test_a_header_promises_no_heartbeat_between_two_drains() -> None:
    header = describe_process(Settings(heartbeat_s=1.0, drain_s=30.0), ClockLine(10, 20))
    assert header.heartbeat_s == 30.0


def test_the_kernel_knows_when_this_process_started() -> None:
    assert start_ticks(os.getpid()) > 0
    assert pid_namespace() == os.stat("/proc/self/ns/pid").st_ino


def test_there_is_no_start_of_a_process_that_is_not_there() -> None:
    unused = int(Path("/proc/sys/kernel/pid_max").read_text()) + 1
    assert start_ticks(unused) == 0


def test_a_dead_child_that_nobody_has_noticed_does_not_count_as_running() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, and left as it is
    assert start_ticks(child.pid) == 0
    child.wait()


def test_a_name_with_brackets_and_spaces_does_not_confuse(tmp_path: Path) -> None:
    program = tmp_path / "a) R (b"
    program.symlink_to("/bin/sleep")
    child = subprocess.Popen([program, "60"])
    try:
        assert start_ticks(child.pid) >= start_ticks(os.getpid())
    finally:
        child.kill()
        child.wait()
