from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

import msgspec
import pytest

from rollscope.instrument.sinks import Frame, Opening, Sink
from rollscope.instrument.sinks.file import FileSink
from rollscope.model.rundir import RunFile
from tests.builders import make_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PROCESS = bytes(range(8))


@pytest.fixture
def sink() -> Iterator[FileSink]:
    sink = FileSink()
    yield sink
    sink.close()


def opening(directory: Path, process: bytes = PROCESS, host: str = "node-1.cluster") -> Opening:
    header = make_header(host=host, pid=42, started_ns=7)
    return Opening("a-run", str(directory), process, header, {"lr": "1e-5"})


def test_the_file_sink_is_a_sink(sink: FileSink) -> None:
    assert isinstance(sink, Sink)


def test_a_log_is_named_after_host_pid_and_process(sink: FileSink, tmp_path: Path) -> None:
    sink.open(opening(tmp_path))
    (log,) = (tmp_path / "a-run" / "log").iterdir()
    assert log.name == "node_1.cluster-42-04050607.rsl"


@pytest.mark.parametrize("host", ["", "../../etc", "a/b\0c", "ünï", "."])
def test_no_host_name_leads_out_of_the_run(sink: FileSink, tmp_path: Path, host: str) -> None:
    sink.open(opening(tmp_path, host=host))
    assert len(list((tmp_path / "a-run" / "log").iterdir())) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a-run"]


def test_frames_are_appended_in_order_and_payloads_apart(sink: FileSink, tmp_path: Path) -> None:
    sink.open(opening(tmp_path))
    sink.write(Frame(b"one "))
    sink.write(Frame(b"secret", is_payload=True))
    sink.write(Frame(b"two"))
    run = tmp_path / "a-run"
    (log,), (payload,) = (run / "log").iterdir(), (run / "payloads").iterdir()
    assert log.read_bytes() == b"one two"
    assert payload.read_bytes() == b"secret"
    assert log.name == payload.name


def test_no_payload_folder_is_made_without_payloads(sink: FileSink, tmp_path: Path) -> None:
    sink.open(opening(tmp_path))
    sink.write(Frame(b"x"))
    assert not (tmp_path / "a-run" / "payloads").exists()


def test_a_frame_can_be_read_the_moment_it_is_written(sink: FileSink, tmp_path: Path) -> None:
    sink.open(opening(tmp_path))
    (log,) = (tmp_path / "a-run" / "log").iterdir()
    for number in range(1, 4):
        sink.write(Frame(b"x"))
        assert log.stat().st_size == number


def test_the_run_file_says_what_the_run_is(sink: FileSink, tmp_path: Path) -> None:
    sink.open(opening(tmp_path))
    content = (tmp_path / "a-run" / "run.json").read_bytes()
    assert msgspec.json.decode(content, type=RunFile) == RunFile("a-run", 7, 1, {"lr": "1e-5"})


def test_the_first_process_writes_the_run_file(sink: FileSink, tmp_path: Path) -> None:
    sink.open(opening(tmp_path))
    first = (tmp_path / "a-run" / "run.json").read_bytes()
    other = FileSink()
    changed = opening(tmp_path, process=bytes(8))._replace(tags={"other": "tags"})
    other.open(changed)
    other.close()
    assert (tmp_path / "a-run" / "run.json").read_bytes() == first
    assert len(list((tmp_path / "a-run" / "log").iterdir())) == 2
    assert sorted(path.name for path in (tmp_path / "a-run").iterdir()) == ["log", "run.json"]


@pytest.mark.parametrize("code", [errno.EEXIST, errno.EPERM, errno.ENOTSUP])
def test_the_run_file_needs_no_hard_links_and_leaves_no_draft(
    sink: FileSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def link(source: str, target: str) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link)
    sink.open(opening(tmp_path))
    names = sorted(path.name for path in (tmp_path / "a-run").iterdir())
    # Where it exists already, another process has just written it.
    assert names == (["log"] if code == errno.EEXIST else ["log", "run.json"])


def fail_after(writes: list[int]) -> Callable[[int, bytes], int]:
    """Give an `os.write` that takes so many bytes each time, then finds the disk full."""
    write = os.write

    def limited(file: int, data: bytes) -> int:
        if not writes:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[: writes.pop(0)])

    return limited


def test_a_frame_that_does_not_fit_on_the_disk_is_taken_back(
    sink: FileSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink.open(opening(tmp_path))
    (log,) = (tmp_path / "a-run" / "log").iterdir()
    sink.write(Frame(b"whole"))
    for writes in ([], [3], [1, 1, 1]):
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", fail_after(writes))
            with pytest.raises(OSError, match="No space left"):
                sink.write(Frame(b"not whole"))
        assert log.read_bytes() == b"whole"
    sink.write(Frame(b"again"))
    assert log.read_bytes() == b"wholeagain"


def test_a_frame_written_in_pieces_is_written_wholly(
    sink: FileSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink.open(opening(tmp_path))
    (log,) = (tmp_path / "a-run" / "log").iterdir()
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", fail_after([1, 2, 3, 4]))
        sink.write(Frame(b"0123456789"))
    assert log.read_bytes() == b"0123456789"


def test_closing_twice_and_closing_unopened_do_no_harm(sink: FileSink, tmp_path: Path) -> None:
    sink.close()
    sink.open(opening(tmp_path))
    sink.close()
    sink.close()


def test_opening_again_starts_a_log_of_its_own(sink: FileSink, tmp_path: Path) -> None:
    sink.open(opening(tmp_path))
    sink.write(Frame(b"parent"))
    sink.open(opening(tmp_path, process=b"\xff" * 8))
    sink.write(Frame(b"child"))
    contents = [path.read_bytes() for path in sorted((tmp_path / "a-run" / "log").iterdir())]
    assert contents == [b"parent", b"child"]


def test_a_directory_that_cannot_be_made_is_an_error(sink: FileSink, tmp_path: Path) -> None:
    (tmp_path / "a-run").write_text("a file where the run should be")
    with pytest.raises(OSError, match="a-run"):
        sink.open(opening(tmp_path))


def test_a_run_that_was_removed_meanwhile_is_made_again_at_the_second_try(
    sink: FileSink, tmp_path: Path
) -> None:
    sink.open(opening(tmp_path))
    sink.write(Frame(b"removed"))
    shutil.rmtree(tmp_path / "a-run")
    with pytest.raises(FileNotFoundError, match=r"\.rsl was removed"):
        sink.write(Frame(b"first"))
    assert not (tmp_path / "a-run").exists()
    sink.write(Frame(b"first"))
    sink.write(Frame(b" second"))
    sink.write(Frame(b"payload", is_payload=True))
    (log,) = (tmp_path / "a-run" / "log").iterdir()
    (payloads,) = (tmp_path / "a-run" / "payloads").iterdir()
    assert (log.read_bytes(), payloads.read_bytes()) == (b"first second", b"payload")
    assert (tmp_path / "a-run" / "run.json").exists()
