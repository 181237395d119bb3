from __future__ import annotations

import os
from pathlib import Path

import pytest

from rollscope.errors import CommandError
from rollscope.stack.processes import Identity, identify
from rollscope.stack.statefile import Lock, MemberState, StackState, StateDir, default_state_dir

ME = Identity(7, "11", "boot", "host", ("rollscope", "server"))


def a_state() -> StackState:
    member = MemberState(
        name="prometheus",
        state="running",
        address="http://127.0.0.1:9090/",
        health="http://127.0.0.1:9090/-/ready",
        version="2.42.0",
        log="/x/logs/prometheus.log",
        process=ME,
    )
    return StackState(supervisor=ME, page="http://127.0.0.1:7077/", runs="/x", members=[member])


@pytest.mark.parametrize(
    ("environ", "given", "path"),
    [
        ({"ROLLSCOPE_STATE_DIR": "/a", "XDG_STATE_HOME": "/b"}, "/c", "/c/server"),
        ({"ROLLSCOPE_STATE_DIR": "/a", "XDG_STATE_HOME": "/b"}, None, "/a/server"),
        ({"XDG_STATE_HOME": "/b"}, None, "/b/rollscope/server"),
        ({"XDG_STATE_HOME": "relative"}, None, "~/.local/state/rollscope/server"),
        ({}, None, "~/.local/state/rollscope/server"),
    ],
)
def test_the_state_is_kept_where_it_is_said_set_or_usual(
    environ: dict[str, str], given: str | None, path: str
) -> None:
    assert default_state_dir(environ, given) == Path(path).expanduser()


def test_what_was_written_is_read_back_until_it_is_forgotten(tmp_path: Path) -> None:
    where = StateDir(tmp_path / "server")
    where.prepare()
    assert where.read() is None
    where.write(a_state())
    assert where.read() == a_state()
    assert os.listdir(where.path).count("state.json") == 1
    assert not [name for name in os.listdir(where.path) if name.startswith(".state")]
    where.forget()
    assert where.read() is None


def test_a_state_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    where = StateDir(tmp_path)
    (where.state_file / "in the way").mkdir(parents=True)
    with pytest.raises(OSError, match=r"state\.json"):
        where.write(a_state())
    assert os.listdir(tmp_path) == ["state.json"]


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"supervisor": 1}', b"\xff\xfe"])
def test_a_damaged_state_reads_as_none(tmp_path: Path, damage: bytes) -> None:
    where = StateDir(tmp_path)
    where.state_file.write_bytes(damage)
    assert where.read() is None


def test_the_directory_is_for_its_owner_alone(tmp_path: Path) -> None:
    where = StateDir(tmp_path / "deep" / "server")
    where.prepare()
    assert where.path.stat().st_mode & 0o777 == 0o700
    where.write(a_state())
    assert where.state_file.stat().st_mode & 0o077 == 0


def test_a_directory_that_cannot_be_made_is_an_error_that_names_the_option(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match="--state-dir"):
        StateDir(tmp_path / "file" / "server").prepare()


def test_one_process_holds_the_lock_and_others_learn_who(tmp_path: Path) -> None:
    where = StateDir(tmp_path)
    assert where.holder() is None
    lock = Lock.take(where)
    assert lock is not None
    assert Lock.take(where) is None
    assert where.holder() == identify(os.getpid())
    lock.release()
    assert where.holder() is None


def test_a_holder_that_has_not_written_its_name_yet_is_somebody(tmp_path: Path) -> None:
    where = StateDir(tmp_path)
    lock = Lock.take(where)
    assert lock is not None
    where.lock_file.write_bytes(b"")
    holder = where.holder()
    assert holder is not None
    assert holder.pid == 0
    lock.release()
