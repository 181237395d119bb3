from __future__ import annotations

import os
from pathlib import Path

import pytest

from rollscope.errors import NotARunError
from rollscope.model.batch import Payload
from rollscope.model.kinds import Status
from rollscope.model.records import PayloadRecord, Record, SpanRecord
from rollscope.model.rundir import RunFile
from rollscope.store.run import RunFollower, find_run, list_runs, read_run_file
from tests.builders import (
    dead_header,
    frame_of,
    make_batch,
    make_columns,
    make_header,
    make_row,
    write_log,
)


def make_run(directory: Path, name: str, mtime: float = 0) -> Path:
    run = directory / name
    write_log(run / "log" / "a.rsl", [make_batch(header=make_header())])
    if mtime:
        os.utime(run, (mtime, mtime))
    return run


def spans(records: list[Record]) -> list[tuple[str, Status]]:
    return [(r.name, r.status) for r in records if isinstance(r, SpanRecord)]


# Finding


def test_a_run_is_found_by_path_log_and_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "runs", "a")
    monkeypatch.chdir(tmp_path)
    assert find_run(str(run)) == run
    assert find_run("runs/a") == Path("runs/a")
    assert find_run("a") == Path("runs/a")
    assert find_run("a", str(tmp_path / "runs")) == run
    assert find_run(str(run / "log" / "a.rsl")) == run / "log" / "a.rsl"


@pytest.mark.parametrize("given", ["b", "", "../x", "a/b/c", "a\0b", "."])
def test_a_missing_run_is_told_with_the_runs_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    make_run(tmp_path / "runs", "newer", mtime=2000)
    make_run(tmp_path / "runs", "older", mtime=1000)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotARunError) as told:
        find_run(given)
    if given in ("", "."):
        assert "is not a run directory" in str(told.value)
    else:
        assert str(told.value) == f"there is no run {given!r}; runs in runs: older, newer"


def test_a_name_that_no_file_can_have_is_told() -> None:
    with pytest.raises(NotARunError, match="xxx': File name too long"):
        find_run("x" * 300)


def test_a_missing_run_where_there_are_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotARunError, match=r"no run 'b'; there are none in .*nowhere"):
        find_run("b", str(tmp_path / "nowhere"))


def test_a_directory_that_holds_runs_is_told_with_their_names(tmp_path: Path) -> None:
    make_run(tmp_path, "a")
    with pytest.raises(NotARunError, match="it holds the runs: a"):
        find_run(str(tmp_path))


def test_a_directory_that_holds_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotARunError, match="it holds no run either"):
        find_run(str(tmp_path))


def test_a_file_that_is_no_log_is_told(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("hello")
    with pytest.raises(NotARunError, match=r"notes.txt is a file but no \.rsl log"):
        find_run(str(file))


def test_runs_are_listed_from_the_oldest_and_nothing_else_is(tmp_path: Path) -> None:
    make_run(tmp_path, "b", mtime=3000)
    make_run(tmp_path, "a", mtime=3000)
    make_run(tmp_path, "c", mtime=1000)
    (tmp_path / "no-run").mkdir()
    (tmp_path / "file").touch()
    assert list_runs(tmp_path) == ["c", "a", "b"]
    assert list_runs(tmp_path / "missing") == []


def test_the_run_file_is_read_and_not_depended_on(tmp_path: Path) -> None:
    assert read_run_file(tmp_path) is None
    (tmp_path / "run.json").write_text("{broken")
    assert read_run_file(tmp_path) is None
    (tmp_path / "run.json").write_text('{"name": "a"}')
    assert read_run_file(tmp_path) is None
    (tmp_path / "run.json").write_text('{"name":"a","created_ns":1,"schema":1,"new":[],"tags":{}}')
    assert read_run_file(tmp_path) == RunFile("a", 1, 1, {})


# Following


def span_batch(number: int, name: str, status: Status = Status.OK) -> bytes:
    return frame_of(
        make_batch(number, spans=make_columns(make_row(number + 1, name, status=status)))
    )


def test_all_logs_of_a_run_are_followed_and_new_ones_found(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a")
    follower = RunFollower(run)
    assert spans(list(follower.poll())) == []
    with (run / "log" / "a.rsl").open("ab") as file:
        file.write(span_batch(1, "first"))
    header = make_batch(0, process=b"\2" * 8, header=make_header())
    late = make_batch(1, process=b"\2" * 8, spans=make_columns(make_row(5, "second")))
    write_log(run / "log" / "b.rsl", [header, late])
    (run / "log" / "ignored.tmp").write_bytes(b"rubbish")
    assert spans(list(follower.poll())) == [("first", Status.OK), ("second", Status.OK)]
    assert list(follower.poll()) == []
    assert follower.problems == []


def test_a_single_log_is_followed_alone(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a")
    make_run(tmp_path, "a")
    write_log(run / "log" / "b.rsl", [make_batch(0, process=b"\2" * 8, header=make_header())])
    assert len(list(RunFollower(run / "log" / "a.rsl").poll())) == 1
    assert len(list(RunFollower(run).poll())) == 2


def test_payloads_are_read_only_when_asked_for(tmp_path: Path) -> None:
    run = make_run(tmp_path, "a")
    payload = Payload(b"t" * 16, 1, 1, "messages", "[]", False)
    write_log(run / "payloads" / "a.rsl", [make_batch(1, payloads=[payload])])
    assert len(list(RunFollower(run).poll())) == 1
    _, found = RunFollower(run, payloads=True).poll()
    assert isinstance(found, PayloadRecord)


def test_spans_of_a_process_that_died_are_lost(tmp_path: Path) -> None:
    log = tmp_path / "a" / "log" / "a.rsl"
    write_log(log, [make_batch(header=dead_header())], tail=span_batch(1, "open", Status.OPEN))
    found = spans(list(RunFollower(tmp_path / "a").poll()))
    assert found == [("open", Status.OPEN), ("open", Status.LOST)]


def test_a_torn_end_is_given_up_only_where_its_process_is_gone(tmp_path: Path) -> None:
    torn = span_batch(1, "torn")[:-1]
    for name, header in (("alive", make_header()), ("dead", dead_header())):
        write_log(tmp_path / name / "log" / "a.rsl", [make_batch(header=header)], tail=torn)
    followers = RunFollower(tmp_path / "alive"), RunFollower(tmp_path / "dead")
    for follower in followers:
        assert spans(list(follower.poll(final=True))) == []
        assert follower.problems == []
    torn_bytes = [log.torn_bytes for follower in followers for log in follower.logs.values()]
    assert torn_bytes == [0, len(torn)]


def test_a_torn_end_of_a_live_process_is_read_once_it_is_whole(tmp_path: Path) -> None:
    frame = span_batch(1, "slow")
    log = tmp_path / "a" / "log" / "a.rsl"
    write_log(log, [make_batch(header=make_header())], tail=frame[:-1])
    follower = RunFollower(tmp_path / "a")
    assert spans(list(follower.poll(final=True))) == []
    with log.open("ab") as file:
        file.write(frame[-1:])
    assert spans(list(follower.poll(final=True))) == [("slow", Status.OK)]
    assert follower.problems == []


@pytest.mark.parametrize("content", [b"\0" * 1000, b"rubbish"], ids=["zeros", "rubbish"])
def test_one_log_that_is_no_log_does_not_hide_the_others(tmp_path: Path, content: bytes) -> None:
    """A machine that lost power may leave files of zeros."""
    run = make_run(tmp_path, "a")
    with (run / "log" / "a.rsl").open("ab") as file:
        file.write(span_batch(1, "kept"))
    (run / "log" / "0-first.rsl").write_bytes(content)
    (run / "log" / "z-last.rsl").write_bytes(content)
    follower = RunFollower(run)
    assert spans(list(follower.poll(final=True))) == [("kept", Status.OK)]
    assert len(follower.problems) == 2
    assert all("is not a Rollscope log" in problem for problem in follower.problems)
    assert spans(list(follower.poll(final=True))) == []
    assert len(follower.problems) == 2


def test_a_single_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.rsl"
    file.write_bytes(b"rubbish")
    with pytest.raises(NotARunError):
        list(RunFollower(file).poll())
