"""Runs that every reading command has to cope with, and how their output is held to its width."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

import pytest
from rich.cells import cell_len

import rollscope as rs
from rollscope.cli.main import main
from rollscope.screens.tables import Screen
from rollscope.testing import RunShape, RunTruth, generate_run

if TYPE_CHECKING:
    from pathlib import Path

Out = pytest.CaptureFixture[str]
HOSTILE = "\x1b[31mred\x1b]0;owned\x07\u202e"
"""Would colour the rest of the terminal, rename its window and turn the text round."""
SHAPE = RunShape(
    steps=4,
    tasks_per_step=6,
    rollout_processes=2,
    slots=8,
    stuck_sessions=2,
    dying_process=False,
    clock_offsets_s=(0.0,),
)


def make_run(path: Path, shape: RunShape = SHAPE) -> RunTruth:
    """Write a run that a trainer and two rollout processes left; nobody of it lives."""
    return generate_run(path, shape)


def make_hostile_run(path: Path) -> Path:
    """Record a run whose every name is out to harm a terminal."""
    rs.init(run=path.name, dir=path.parent)
    attrs: dict[str, Any] = {f"key {HOSTILE}": HOSTILE}
    with rs.step(0), rs.task(f"{HOSTILE}/1"):
        for sample in range(2):
            with rs.session(sample=sample, **attrs) as session:
                rs.event(f"event {HOSTILE}", note=HOSTILE)
                with rs.phase(f"phase {HOSTILE}", tool=HOSTILE):
                    pass
                session.finish("failed", reason=f"Error {HOSTILE}: {HOSTILE}")
    rs.shutdown()
    return path


def make_empty_run(path: Path) -> Path:
    """Record a run in which nothing happened."""
    rs.init(run=path.name, dir=path.parent)
    rs.shutdown()
    return path


def make_stepless_run(path: Path) -> Path:
    """Record a run of sessions that belong to no step."""
    rs.init(run=path.name, dir=path.parent)
    with rs.task("gsm8k/1"):
        for sample in range(3):
            with rs.session(sample=sample) as session:
                with rs.phase("generate"):
                    pass
                session.finish("accepted", reward=1.0)
    rs.shutdown()
    return path


def read(capsys: Out, *argv: str) -> str:
    """Run a command that has to succeed without complaints, and give what it printed."""
    assert main(list(argv)) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def read_json(capsys: Out, *argv: str) -> Any:
    """Run a command with `--json`, and give its one answer."""
    return json.loads(read(capsys, *argv, "--json"))


def refuse(capsys: Out, *argv: str) -> tuple[int, str]:
    """Run a command that has to fail, and give its exit code and complaint."""
    code = main(list(argv))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("rollscope: ")
    return code, err


def set_screen(monkeypatch: pytest.MonkeyPatch, width: int, encoding: str = "utf-8") -> None:
    """Pretend to print to a terminal of some width."""
    screen = Screen(width=width, encoding=encoding)
    monkeypatch.setattr(Screen, "of", functools.partial(lambda *_: screen))


def assert_fits(text: str, width: int = 80) -> None:
    """See that no line is too long, and that nothing in it would move the cursor."""
    for line in text.splitlines():
        assert cell_len(line) <= width, line
        assert line.isprintable(), line
        assert line == line.rstrip()
