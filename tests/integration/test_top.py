"""`rollscope top` as a program: one picture for scripts, and the whole thing in a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING

import pytest

import rollscope as rs
from rollscope.store.embedded import RunStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ROLLSCOPE = (sys.executable, "-m", "rollscope")
_PATIENCE_S = 60.0


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Path]:
    """Record a run with three sessions open, one of them past its deadline."""
    rs.init(run="live", dir=tmp_path)
    with rs.step(3), rs.task("gsm8k/1"):
        with rs.session(sample=0) as done:
            done.finish("accepted")
        with (
            rs.session(sample=1),
            rs.phase("generate"),
            rs.session(sample=2, deadline_s=0.001),
            rs.phase("toolcall", tool="browser"),
            rs.session(sample=3),
        ):
            rs.flush()
            yield tmp_path / "live"
    rs.shutdown()


def _printed(*args: str) -> str:
    done = subprocess.run(
        [*_ROLLSCOPE, *args], capture_output=True, text=True, timeout=_PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_picture_has_the_numbers_of_the_answers(live: Path) -> None:
    from rollscope.answers.questions import QUESTIONS

    picture = _printed("top", str(live), "--once")
    judged = json.loads(_printed("stuck", str(live), "--json"))
    with RunStore(live, threads=1) as store:
        now = json.loads(_encoded(QUESTIONS["now"].ask(store)))
    assert "\x1b" not in picture
    assert judged["alarms"] == now["alarms"]
    said = f"{now['alarms']} alarm{'' if now['alarms'] == 1 else 's'}"
    assert f"step 3, live. {said}, {judged['open_sessions']} open sessions" in picture
    flight = now["in_flight"]
    assert f"in flight {flight['count']} of ~{flight['capacity']}" in picture
    for row in judged["rows"]:
        (line,) = [one for one in picture.splitlines() if row["session_id"] in one]
        assert line.split()[0] == row["band"]
    assert len(judged["rows"]) == judged["open_sessions"] == len(now["stuck"]) == 3


def _encoded(answer: object) -> bytes:
    from rollscope.answers.encoding import encode_answer

    return encode_answer(answer)


def test_without_a_terminal_it_names_the_way_out() -> None:
    done = subprocess.run(
        [*_ROLLSCOPE, "top"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    assert done.returncode == 2
    assert "--once" in done.stderr


@pytest.mark.parametrize("no_color", [False, True])
def test_in_a_terminal_it_draws_and_q_ends_it(live: Path, no_color: bool) -> None:
    shown, code = _in_terminal([*_ROLLSCOPE, "top", str(live)], "toolcall browser", no_color)
    assert code == 0
    colours = set(re.findall(r"\x1b\[(?:\d+;)*((?:3|4|9|10)[0-7])(?:;\d+)*m", shown))
    assert bool(colours) is not no_color


def _in_terminal(command: list[str], awaited: str, no_color: bool) -> tuple[str, int]:
    """Run a program in a terminal of 80 by 24, wait for a word, press q, and give all it wrote."""
    main, side = pty.openpty()
    termios.tcsetwinsize(side, (24, 80))
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    environment.pop("NO_COLOR", None)
    if no_color:
        environment["NO_COLOR"] = "1"
    program = subprocess.Popen(
        command, stdin=side, stdout=side, stderr=side, env=environment, start_new_session=True
    )
    os.close(side)
    written = b""
    deadline_s = time.monotonic() + _PATIENCE_S
    try:
        has_quit = False
        while time.monotonic() < deadline_s:
            if not select.select([main], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(main, 65_536)
            except OSError:  # the other side is closed
                break
            written += data
            if awaited.encode() in written and not has_quit:
                has_quit = True
                os.write(main, b"q")
        return written.decode(errors="replace"), program.wait(_PATIENCE_S)
    finally:
        program.kill()
        program.wait()
        os.close(main)
