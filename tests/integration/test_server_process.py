from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.cli.main import main
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from tests.integration.support import PATIENCE_S, Lab, eventually

if TYPE_CHECKING:
    from pathlib import Path

ADDRESS = re.compile(r"http://\S+")


def start_view(lab: Lab, *args: object) -> tuple[subprocess.Popen[str], str]:
    """Start a viewer and give the address it prints."""
    process = lab.launch(lab.command("view", *args, "--port", "0"))
    assert process.stdout is not None
    address = ADDRESS.search(process.stdout.readline())
    assert address is not None
    return process, address[0]


def status_of(address: str, path: str = "") -> int:
    """Ask as a program with the token of the printed address would."""
    base, _, token = address.partition("?token=")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(base + path, headers=headers)  # noqa: S310  (http only)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_viewer_serves_a_directory_without_runs_and_ends_cleanly(
    lab: Lab, number: signal.Signals
) -> None:
    (lab.folder / "runs").mkdir()
    process, address = start_view(lab, "runs")
    assert status_of(address, "api/v1/runs") == 200
    assert status_of(address.partition("?")[0], "api/v1/runs") == 401

    assert "ssh -L " in first_line(process, "stdout")
    assert first_line(process, "stdout") == "Press Ctrl+C to stop.\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (0, "", "")


def test_streams_of_events_do_not_keep_a_viewer_from_ending(lab: Lab) -> None:
    lab.finish("import rollscope as rs\nrs.init()\nrs.shutdown()\n")
    process, address = start_view(lab, lab.run, "--no-token")
    with urllib.request.urlopen(f"{address}api/v1/events?run=run", timeout=PATIENCE_S) as stream:  # noqa: S310
        assert stream.readline() == b"retry: 2000\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_answers_on_their_way_do_not_keep_a_viewer_from_ending(
    lab: Lab, number: signal.Signals
) -> None:
    generate_run(lab.run, RunShape.sized(20_000))
    process, address = start_view(lab, lab.run, "--no-token")
    host = address.removeprefix("http://").rstrip("/")
    name, _, port = host.partition(":")
    paths = [f"answer/steps?last={last}" for last in range(20, 50)]  # for several seconds
    with ExitStack() as stack:
        for path in ("tile?by=task", "frame?mode=packed", *paths):
            asking = stack.enter_context(socket.create_connection((name, int(port))))
            request = f"GET /api/v1/run/run/{path} HTTP/1.1\r\nHost: {host}"
            asking.sendall(f"{request}\r\n\r\n".encode())
        assert status_of(address, "api/v1/runs") == 200  # so those before it are being answered

        process.send_signal(number)

        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, "")
    assert "Traceback" not in out


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--no-token", "--host", "0.0.0.0"], "leave it out"),  # noqa: S104  (refused)
        (["--no-token", "--token-file", "t"], "exclude each other"),
        (["no-such-run"], "there is no run"),
        (["--host", "256.1.1.1"], "cannot listen"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(
    args: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["view", *args]) in (1, 2)
    assert told in capsys.readouterr().err


def test_a_port_that_is_taken_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["view", str(tmp_path), "--port", str(port)]) == 1
    assert f"port {port}" in capsys.readouterr().err


VIEWED = """
import os, sys
import rollscope as rs

rs.init(viewer={viewer!r}, rank={rank!r})
if {forks!r} and os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
print("up", flush=True)
sys.stdin.readline()
{ending}
"""


def viewed(
    viewer: object, *, rank: int | None = None, ending: str = "", forks: bool = False
) -> str:
    return VIEWED.format(viewer=viewer, rank=rank, ending=ending, forks=forks)


def first_line(process: subprocess.Popen[str], stream: str = "stderr") -> str:
    lines: Any = getattr(process, stream)
    return str(lines.readline())


def viewers(lab: Lab) -> list[int]:
    """Give the processes that view the run, by the kernel's account."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if b"view" in words and os.fsencode(lab.run) in words:
            found.append(int(name))
    return found


@pytest.mark.parametrize("ending", ["shutdown", "kill"])
def test_a_program_gets_one_viewer_that_ends_with_its_run(lab: Lab, ending: str) -> None:
    code = "rs.shutdown(); sys.stdin.read()" if ending == "shutdown" else "sys.stdin.read()"
    program = lab.start(viewed(True, ending=code, forks=True))
    address = ADDRESS.search(first_line(program))
    assert address is not None
    assert "ssh -L" in first_line(program)
    second = lab.start(viewed(True))
    assert first_line(second, "stdout") == "up\n"
    assert status_of(address[0], "api/v1/run/run/answer/stuck") == 200
    assert len(viewers(lab)) == 1

    second.communicate("go on\n", timeout=PATIENCE_S)
    assert len(viewers(lab)) == 1
    if ending == "shutdown":
        assert program.stdin is not None
        program.stdin.write("go on\n")
        program.stdin.flush()
    else:
        program.kill()
    eventually(lambda: not viewers(lab), "the viewer ends")


def test_only_the_first_rank_starts_a_viewer(lab: Lab) -> None:
    program = lab.start(viewed(True, rank=3))
    out, err = program.communicate("go on\n", timeout=PATIENCE_S)
    assert (out, err) == ("up\n", "")
    assert viewers(lab) == []


def test_a_viewer_that_is_to_stay_does(lab: Lab) -> None:
    program = lab.start(viewed("stay"))
    address = ADDRESS.search(first_line(program))
    assert address is not None
    program.communicate("go on\n", timeout=PATIENCE_S)
    (viewer,) = viewers(lab)
    try:
        assert status_of(address[0], "api/v1/runs") == 200
    finally:
        os.kill(viewer, signal.SIGTERM)
    eventually(lambda: not viewers(lab), "the viewer ends")


def test_a_missing_extra_costs_one_sentence_and_no_run(lab: Lab) -> None:
    hiding = """
import importlib.util as util
find = util.find_spec
util.find_spec = lambda name, *more: None if name == "uvicorn" else find(name, *more)
"""
    program = lab.start(hiding + viewed(True))
    out, err = program.communicate("go on\n", timeout=PATIENCE_S)
    assert (program.returncode, out) == (0, "up\n")
    assert "uvicorn is missing: pip install 'rollscope[server]'" in err
    assert sys.executable not in err
