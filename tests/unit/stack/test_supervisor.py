from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rollscope.errors import CommandError
from rollscope.stack import children
from rollscope.stack import supervisor as supervising
from rollscope.stack.interrupts import Interrupts
from rollscope.stack.looking import look_at
from rollscope.stack.members import Member
from rollscope.stack.planning import StackPlan
from rollscope.stack.restarts import RestartPolicy
from rollscope.stack.statefile import Lock, StackState, StateDir
from rollscope.stack.supervisor import Interrupted, Supervisor

SLEEP = "import time; time.sleep(600)"
SOON = RestartPolicy(most=2, first_delay_s=0.01)


class Stage:
    """A state directory whose lock is held here, and what the supervisor said."""

    def __init__(self, where: StateDir) -> None:
        self.where = where
        self.said: list[str] = []
        self.interrupts = Interrupts()

    def supervisor(self, *members: Member) -> Supervisor:
        plan = StackPlan(
            page="http://127.0.0.1:7077/",
            runs=Path("runs"),
            home=self.where.path,
            token_file=None,
            members=members,
            files={},
            notes=(),
        )
        return Supervisor(self.where, plan, self.said.append, SOON)

    def states(self) -> dict[str, str]:
        return {each.name: each.state for each in look_at(self.where).members}


def python(name: str, code: str, health: str = "") -> Member:
    return Member(name=name, command=(sys.executable, "-c", code), version="1", health=health)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    where = StateDir(tmp_path)
    where.prepare()
    lock = Lock.take(where)
    assert lock is not None
    stage = Stage(where)
    with stage.interrupts:
        yield stage
    lock.release()


def ends_after(stage: Stage, sentence: str) -> None:
    """Ask for an end as soon as something was said."""

    class Said(list[str]):
        def append(self, text: str) -> None:
            super().append(text)
            if sentence in text:
                os.kill(os.getpid(), signal.SIGTERM)

    stage.said = Said()


def test_members_run_until_they_are_stopped_and_none_is_left(stage: Stage) -> None:
    supervisor = stage.supervisor(python("first", SLEEP), python("second", SLEEP))
    supervisor.start(stage.interrupts)
    seen = look_at(stage.where)
    assert stage.states() == {"first": "running", "second": "running"}
    assert seen.is_fine
    supervisor.stop(stage.interrupts)
    assert stage.states() == {"first": "stopped", "second": "stopped"}
    for each in seen.members:
        assert each.pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(each.pid, 0)


def test_members_end_in_reverse_order(stage: Stage, tmp_path: Path) -> None:
    said = tmp_path / "said"
    code = """
import signal, sys, time
def end(*_):
    open({said!r}, "a").write({name!r} + " ")
    sys.exit()
signal.signal(signal.SIGTERM, end)
open({up!r}, "w").close()
time.sleep(600)
"""
    names = ("first", "second", "third")
    members = [
        python(each, code.format(said=str(said), name=each, up=str(tmp_path / each)))
        for each in names
    ]
    supervisor = stage.supervisor(*members)
    supervisor.start(stage.interrupts)
    while not all((tmp_path / each).exists() for each in names):
        stage.interrupts.wait(0.02)
    supervisor.stop(stage.interrupts)
    assert said.read_text().split() == ["third", "second", "first"]


def test_a_member_that_ends_while_it_starts_is_told_of_with_its_last_words(stage: Stage) -> None:
    supervisor = stage.supervisor(
        python("fine", SLEEP), python("bad", "import sys; sys.exit('no such flag')")
    )
    with pytest.raises(CommandError) as caught:
        supervisor.start(stage.interrupts)
    assert str(caught.value).startswith("bad has ended with code 1 while it started.")
    assert str(caught.value).endswith("no such flag")
    supervisor.stop(stage.interrupts)


def test_a_program_that_cannot_be_run_is_told_of(stage: Stage, tmp_path: Path) -> None:
    missing = Member(name="bad", command=(str(tmp_path / "missing"), "x"), version="1")
    with pytest.raises(CommandError, match="bad cannot be started"):
        stage.supervisor(missing).start(stage.interrupts)


def test_a_signal_while_members_start_is_heeded(stage: Stage) -> None:
    supervisor = stage.supervisor(python("slow", SLEEP, health="http://127.0.0.1:1/"))
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(Interrupted):
        supervisor.start(stage.interrupts)
    supervisor.stop(stage.interrupts)
    assert stage.states() == {"slow": "stopped"}


def test_a_member_that_keeps_ending_is_left_alone_and_the_others_go_on(
    stage: Stage, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    code = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\nexit('gone')"
    ends_after(stage, "ended too often")
    supervisor = stage.supervisor(python("weak", code), python("strong", SLEEP))
    supervisor.start(stage.interrupts)
    go.touch()
    assert supervisor.watch(stage.interrupts) == signal.SIGTERM
    assert [text.partition(".")[0] for text in stage.said] == ["weak has ended with code 1"] * 3
    assert all(text.endswith("gone") for text in stage.said)
    state = stage.where.read()
    assert state is not None
    weak, strong = state.members
    assert (weak.state, weak.restarts) == ("failed", 2)
    assert strong.state == "running"
    supervisor.stop(stage.interrupts)


def test_a_member_that_was_killed_comes_back_under_a_new_number(stage: Stage) -> None:
    ends_after(stage, "runs again")
    supervisor = stage.supervisor(python("one", SLEEP))
    supervisor.start(stage.interrupts)
    (before,) = look_at(stage.where).members
    assert before.pid is not None
    os.kill(before.pid, signal.SIGKILL)
    supervisor.watch(stage.interrupts)
    (after,) = look_at(stage.where).members
    assert after.state == "running"
    assert after.restarts == 1
    assert after.pid not in (None, before.pid)
    assert stage.said[0].startswith("one was killed by SIGKILL")
    supervisor.stop(stage.interrupts)


def test_a_state_that_could_not_be_written_is_written_later(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = stage.supervisor(python("one", SLEEP))
    with monkeypatch.context() as full:
        full.setattr(StateDir, "write", _no_space)
        supervisor.start(stage.interrupts)
    assert stage.where.read() is None
    written = StateDir.write

    def write_and_end(where: StateDir, state: StackState) -> None:
        written(where, state)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(StateDir, "write", write_and_end)
    supervisor.watch(stage.interrupts)
    assert stage.states() == {"one": "running"}
    assert len(stage.said) == 1
    monkeypatch.setattr(StateDir, "write", written)
    supervisor.stop(stage.interrupts)


def _no_space(where: StateDir, state: StackState) -> None:
    raise OSError("the disk is full")


def test_a_log_that_grows_large_is_set_aside_while_its_member_runs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "_MOST_LOG_BYTES", 1_000)
    monkeypatch.setattr(supervising, "_LOGS_EVERY_S", 0.0)
    code = "import time\nwhile True: print('x' * 99, flush=True); time.sleep(0.01)"
    supervisor = stage.supervisor(python("one", code))
    supervisor.start(stage.interrupts)
    log = stage.where.log_of("one")
    aside = log.with_suffix(".old.log")

    def end_once_set_aside(timeout_s: float) -> None:
        if aside.exists():
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(stage.interrupts, "wait", end_once_set_aside)
    supervisor.watch(stage.interrupts)
    monkeypatch.undo()
    supervisor.stop(stage.interrupts)
    assert aside.stat().st_size > 1_000
    assert set(log.read_text()) <= {"x", "\n"}  # no hole where the old text was


def test_what_a_dead_member_has_left_running_is_ended(stage: Stage, tmp_path: Path) -> None:
    child = tmp_path / "child"
    code = f"""
import subprocess, sys, time
left = subprocess.Popen([sys.executable, "-c", {SLEEP!r}])
open({str(child)!r}, "w").write(str(left.pid))
time.sleep(600)
"""
    ends_after(stage, "was killed")
    supervisor = stage.supervisor(python("parent", code))
    supervisor.start(stage.interrupts)
    while not (child.exists() and child.read_text()):
        stage.interrupts.wait(0.02)
    (parent,) = look_at(stage.where).members
    assert parent.pid is not None
    os.kill(parent.pid, signal.SIGKILL)
    supervisor.watch(stage.interrupts)
    left = int(child.read_text())
    while (
        Path(f"/proc/{left}/stat").exists()
        and "Z" not in Path(f"/proc/{left}/stat").read_text().rpartition(")")[2]
    ):
        stage.interrupts.wait(0.02)
    supervisor.stop(stage.interrupts)


def test_asked_twice_the_supervisor_waits_for_nobody(stage: Stage, tmp_path: Path) -> None:
    up = tmp_path / "up"
    code = f"""
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open({str(up)!r}, "w").close()
time.sleep(600)
"""
    supervisor = stage.supervisor(python("stubborn", code))
    supervisor.start(stage.interrupts)
    while not up.exists():
        stage.interrupts.wait(0.02)

    class Impatient(Interrupts):
        def wait(self, timeout_s: float) -> None:
            self.asked.append(signal.SIGINT)

    impatient = Impatient()
    impatient.asked = [signal.SIGINT]
    supervisor.stop(impatient)
    assert len(impatient.asked) == 2
    assert stage.states() == {"stubborn": "stopped"}
