from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from rollscope.stack import processes
from rollscope.stack.processes import Identity, end_group, identify, is_alive


@dataclass
class Started:
    process: subprocess.Popen[bytes]
    identity: Identity


def start(*command: str) -> Started:
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"  # so that it is past its exec
    identity = identify(process.pid)
    assert identity is not None
    return Started(process, identity)


@pytest.fixture
def sleeper() -> Iterator[Started]:
    started = start(sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)")
    yield started
    started.process.kill()
    started.process.communicate()


def test_a_process_is_known_again_while_it_lives(sleeper: Started) -> None:
    assert sleeper.identity.command[0] == sys.executable
    assert is_alive(sleeper.identity)
    sleeper.process.kill()
    os.waitid(os.P_PID, sleeper.process.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(sleeper.identity), "only its remains are left"
    sleeper.process.wait()
    assert not is_alive(sleeper.identity)


@pytest.mark.parametrize("part", ["started", "boot", "host"])
def test_a_stranger_with_the_same_number_is_never_ended(sleeper: Started, part: str) -> None:
    stranger = msgspec.structs.replace(sleeper.identity, **{part: "other"})
    assert not is_alive(stranger)
    assert not end_group(stranger, 0)
    assert sleeper.process.poll() is None


def test_a_script_that_becomes_the_program_it_wraps_is_still_known() -> None:
    started = start("/bin/sh", "-c", "echo up; read _ < /dev/null; exec sleep 600")
    while Path(f"/proc/{started.process.pid}/comm").read_text() != "sleep\n":
        time.sleep(0.01)
    assert is_alive(started.identity)
    assert end_group(started.identity, 10)
    assert started.process.wait() == -signal.SIGTERM
    started.process.communicate()


def test_a_process_is_asked_to_end_first(sleeper: Started) -> None:
    # Nobody of this process may wait for it here, as nobody could for an orphan.
    assert end_group(sleeper.identity, 10)
    assert sleeper.process.wait() == -signal.SIGTERM


def test_a_process_that_does_not_listen_is_killed_with_its_children() -> None:
    body = "trap '' TERM; sleep 600 & echo up; wait; wait"
    started = start("/bin/sh", "-c", body)
    assert end_group(started.identity, 0.1)
    assert started.process.wait() == -signal.SIGKILL
    assert started.process.stdout is not None
    # Ends only when no process of the group has it open any more.
    assert started.process.stdout.read() == b""
    started.process.stdout.close()


def test_processes_are_told_apart_where_there_is_only_ps(
    sleeper: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_from_proc", processes._from_ps)
    identity = identify(sleeper.process.pid)
    assert identity is not None
    assert is_alive(identity)
    assert identity.started.count(":") == 2
    sleeper.process.kill()
    sleeper.process.wait()
    assert not is_alive(identity)
