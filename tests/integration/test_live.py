"""Reading a run while it is written: what a reader sees, and when."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.support import PATIENCE_S, Lab, Raw, eventually

if TYPE_CHECKING:
    from collections.abc import Callable

_STUCK = """
    import sys
    import rollscope as rs

    rs.init(heartbeat_s=0.2)
    print("ready")
    with rs.task("item"), rs.session(sample=3):
        with rs.phase("toolcall", tool="browser"):
            sys.stdin.readline()
"""


class _Follower:
    """`rollscope cat --follow`, read line by line."""

    def __init__(self, lab: Lab) -> None:
        self.process = lab.launch(lab.command("cat", "--follow", lab.run))
        self._lines: queue.Queue[Raw] = queue.Queue()
        self.seen: list[Raw] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(json.loads(line))

    def wait_for(self, what: str, wanted: Callable[[Raw], Any]) -> Raw:
        """Read on until a record comes that is wanted."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                record = self._lines.get(timeout=max(deadline - time.monotonic(), 0.01))
            except queue.Empty:
                pytest.fail(f"never came: {what}")
            self.seen.append(record)
            if wanted(record):
                return record

    def interrupt(self) -> tuple[int, str]:
        """End it as Ctrl-C does; give exit code and error stream."""
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(PATIENCE_S)
        self._reader.join()
        assert self.process.stderr is not None
        return code, self.process.stderr.read()


def _is_span(name: str, status: str) -> Callable[[Raw], bool]:
    return lambda record: (
        record["record"] == "span" and (record["name"], record["status"]) == (name, status)
    )


def test_a_stuck_span_is_visible_at_once_and_its_process_keeps_beating(lab: Lab) -> None:
    program = lab.start(_STUCK)
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    started = time.monotonic()

    eventually(lambda: lab.run.exists() and len(lab.read().spans) == 3, "the spans are visible")
    visible_s = time.monotonic() - started
    print(f"visible after {visible_s * 1e3:.0f} ms")  # noqa: T201  (a figure worth seeing)
    assert visible_s < 5  # a second, and patience with a busy machine
    spans = {span.name: span for span in lab.read().spans.values()}
    assert {span.status for span in spans.values()} == {"open"}
    assert spans["toolcall"].attrs == {"tool": "browser"}
    assert spans["toolcall"].end_ns is None
    assert spans["toolcall"].session_id == spans["session"].span_id

    def beats() -> list[Raw]:
        return [record for record in lab.cat() if record["record"] == "heartbeat"]

    eventually(lambda: len(beats()) >= 4, "it goes on beating")
    assert {span.status for span in lab.read().spans.values()} == {"open"}
    times = [beat["time_ns"] for beat in beats()]
    assert times == sorted(times)
    listed = [beat["open_spans"] for beat in beats() if beat["open_spans"] is not None]
    assert sorted(listed[0]) == sorted(span.span_id for span in spans.values())
    program.communicate("go on\n", timeout=PATIENCE_S)
    assert set(lab.statuses().values()) == {"ok"}


def test_following_shows_starts_ends_new_processes_and_the_dead(lab: Lab) -> None:
    first = lab.start(_STUCK)
    eventually(lambda: any(lab.run.glob("log/*.rsl")), "the first log")
    follower = _Follower(lab)
    start = follower.wait_for("a start", _is_span("toolcall", "open"))
    first.communicate("go on\n", timeout=PATIENCE_S)
    end = follower.wait_for("its end", _is_span("toolcall", "ok"))
    assert end["span_id"] == start["span_id"]
    follower.wait_for("the end of the log", lambda record: record["record"] == "end")

    second = lab.start(_STUCK)
    header = follower.wait_for(
        "a new process",
        lambda record: record["record"] == "process" and record["pid"] == second.pid,
    )
    follower.wait_for("its start", _is_span("toolcall", "open"))
    second.kill()
    second.wait()
    lost = follower.wait_for("the loss", _is_span("toolcall", "lost"))
    assert lost["process"] == header["process"]
    assert lost["reason"] == "its process died"
    assert lost["end_ns"] >= lost["start_ns"]

    assert follower.interrupt() == (0, "")
    ends = [r["span_id"] for r in follower.seen if r["record"] == "span" and r["status"] != "open"]
    assert len(ends) == len(set(ends))


def test_following_goes_on_when_logs_are_deleted(lab: Lab) -> None:
    lab.finish("""
        import rollscope as rs

        rs.init()
        with rs.span("span"):
            pass
    """)
    follower = _Follower(lab)
    follower.wait_for("the end", lambda record: record["record"] == "end")
    for log in lab.run.glob("log/*.rsl"):
        log.unlink()
    program = lab.start(_STUCK)
    follower.wait_for("a log that came later", _is_span("toolcall", "open"))
    program.kill()

    code, err = follower.interrupt()
    assert code == 0
    assert "Traceback" not in err  # it may have been about to open one of them, and says so


def _cat(lab: Lab, *args: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        lab.command("cat", *args),
        capture_output=True,
        text=True,
        cwd=lab.folder,
        timeout=PATIENCE_S,
        check=False,
    )


def _record_some(lab: Lab, number: int = 50) -> None:
    lab.finish(
        """
        import sys
        import rollscope as rs

        rs.init()
        for number in range(int(sys.argv[1])):
            with rs.span(f"span{number}", text="some text"):
                pass
            rs.flush()
        """,
        number,
    )


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("notes.txt", b"hello", "is a file but no .rsl log"),
        ("foreign.rsl", b"\x7fELF" + bytes(100), "is not a Rollscope log"),
        ("text.rsl", b"hello\n" * 1000, "is not a Rollscope log"),
    ],
)
def test_a_foreign_file_is_named_as_such(lab: Lab, name: str, content: bytes, said: str) -> None:
    (lab.folder / name).write_bytes(content)
    done = _cat(lab, name)

    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("path", ["nowhere", "."])
def test_a_path_without_a_run_is_named_as_such(lab: Lab, path: str) -> None:
    done = _cat(lab, path)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("rollscope: ")
    assert done.stderr.count("\n") == 1


def test_damage_in_the_middle_is_told_and_everything_around_it_is_read(lab: Lab) -> None:
    _record_some(lab)
    (log,) = lab.run.glob("log/*.rsl")
    content = bytearray(log.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 40] = b"\xff" * 40
    log.write_bytes(content)

    done = _cat(lab, lab.run)

    assert done.returncode == 1
    assert "is damaged" in done.stderr
    assert "Traceback" not in done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    names = {record["name"] for record in records if record["record"] == "span"}
    assert 45 <= len(names) < 50
    assert {"span0", "span49"} <= names


def test_a_torn_end_of_a_dead_process_is_no_fault(lab: Lab) -> None:
    _record_some(lab)
    (log,) = lab.run.glob("log/*.rsl")
    log.write_bytes(log.read_bytes()[:-3])

    assert len([record for record in lab.cat() if record["record"] == "span"]) == 50


@pytest.mark.parametrize("odd", ["directory", "unreadable", "empty"])
def test_odd_things_among_the_logs_are_told_without_a_traceback(lab: Lab, odd: str) -> None:
    _record_some(lab)
    path = lab.run / "log" / "aaa.rsl"
    if odd == "directory":
        path.mkdir()
    elif odd == "unreadable":
        path.symlink_to("nowhere")
    else:
        path.touch()

    done = _cat(lab, lab.run)

    assert "Traceback" not in done.stderr
    if odd == "empty":
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert done.returncode == 1
        assert "aaa.rsl" in done.stderr
    assert sum('"record":"span"' in line for line in done.stdout.splitlines()) == 50


@pytest.mark.parametrize("follow", [[], ["--follow"]])
def test_a_reader_that_stops_reading_gets_no_traceback(lab: Lab, follow: list[str]) -> None:
    _record_some(lab, 300)
    cat = lab.launch(lab.command("cat", *follow, lab.run))
    assert cat.stdout is not None
    assert cat.stderr is not None
    assert json.loads(cat.stdout.readline())["record"] == "process"
    cat.stdout.close()
    if follow:
        lab.start(_STUCK)  # gives it something to print, and so to notice

    assert cat.wait(PATIENCE_S) == 0
    assert cat.stderr.read() == ""


def test_many_readers_may_read_while_a_program_writes(lab: Lab) -> None:
    program = lab.start("""
        import sys, threading
        import rollscope as rs

        rs.init(drain_s=0.01)
        stop = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.readline(), stop.set())).start()
        number = 0
        while not stop.wait(0.001):
            with rs.span(f"span{number}", text="x" * 500):
                number += 1
        print(number)
    """)
    eventually(lambda: any(lab.run.glob("log/*.rsl")), "the log")
    counts = [len(lab.cat()) for _ in range(10)]  # each of which finds nothing wrong
    out, _ = program.communicate("stop\n", timeout=PATIENCE_S)

    assert counts == sorted(counts)
    assert counts[-1] > counts[0]
    assert len(lab.spans()) == int(out)
