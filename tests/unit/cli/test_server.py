from __future__ import annotations

import json
from pathlib import Path

import pytest

from rollscope.cli.main import main
from rollscope.stack.processes import Identity
from rollscope.stack.statefile import Lock, MemberState, StackState, StateDir

Out = pytest.CaptureFixture[str]


def run(folder: Path, *words: str) -> int:
    return main(["server", *words, "--state-dir", str(folder)])


def test_status_says_that_nothing_runs_with_a_code_of_its_own(tmp_path: Path, capsys: Out) -> None:
    assert run(tmp_path, "status") == 3
    assert capsys.readouterr().out.startswith(f"Nothing is running in {tmp_path}/server")
    assert run(tmp_path, "status", "--json") == 3
    assert json.loads(capsys.readouterr().out)["is_running"] is False


def test_stop_with_nothing_to_stop_is_no_error(tmp_path: Path, capsys: Out) -> None:
    assert run(tmp_path, "stop") == 0
    assert capsys.readouterr().out == f"Nothing is running in {tmp_path}/server.\n"


def test_a_member_that_is_gone_shows_as_down_with_what_is_known_of_it(
    tmp_path: Path, capsys: Out
) -> None:
    where = StateDir(tmp_path / "server")
    where.prepare()
    lock = Lock.take(where)
    assert lock is not None
    me = where.holder()
    assert me is not None
    gone = Identity(2**22 + 7, "1", me.boot, me.host, ("prometheus",))
    member = MemberState(
        name="prometheus",
        state="running",
        address="http://127.0.0.1:9/",
        health="",
        version="2.42.0",
        log="/logs/prometheus.log",
        process=gone,
        restarts=2,
        problem="prometheus was killed by \x1b[31mSIGKILL",
    )
    where.write(StackState(supervisor=me, page="http://127.0.0.1:1/", runs="r", members=[member]))
    assert run(tmp_path, "status") == 1
    shown = capsys.readouterr().out
    assert "down" in shown
    assert "\x1b[31m" not in shown, "what logs hold is made visible, not obeyed"
    assert "restarted 2 times" in shown
    lock.release()
    assert run(tmp_path, "status") == 3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--with", "jaeger"], "'jaeger' is none of"),
        (["--no-token", "--host", "10.0.0.7"], "--no-token would let everybody"),
        (["--retention", "forever"], "'forever' is no time"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    tmp_path: Path, capsys: Out, words: list[str], told: str
) -> None:
    assert run(tmp_path, "start", *words) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_a_port_has_to_be_one(tmp_path: Path, capsys: Out, port: str) -> None:
    with pytest.raises(SystemExit):
        run(tmp_path, "start", "--port", port)
    assert "is no port from 1 to 65535" in capsys.readouterr().err


def test_an_action_has_to_be_named(capsys: Out) -> None:
    with pytest.raises(SystemExit):
        main(["server"])
    assert "ACTION" in capsys.readouterr().err
