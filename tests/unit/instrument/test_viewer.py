from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

import rollscope as rs
from rollscope.config import resolve
from rollscope.errors import SettingError
from rollscope.instrument import viewer

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (True, True),
        ("1", True),
        ("off", False),
        (7078, 7078),
        ("7078", 7078),
        ("stay", "stay"),
    ],
)
def test_a_viewer_is_asked_for_in_these_ways(given: object, value: object) -> None:
    assert resolve({"viewer": given}, {}).viewer == value
    assert resolve({}, {"ROLLSCOPE_VIEWER": str(given)}).viewer == value


@pytest.mark.parametrize("given", [70_000, -5, "maybe", 1.5])
def test_anything_else_is_refused(given: object) -> None:
    with pytest.raises(SettingError, match="a port"):
        resolve({"viewer": given}, {})


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Note what would be started, and start nothing."""
    commands: list[list[str]] = []

    def start(command: list[str], *_: Any) -> int:
        commands.append(command)
        return 0

    monkeypatch.setattr(viewer, "_start", start)
    return commands


@pytest.mark.parametrize(
    ("rank", "variable", "number"),
    [(None, None, 1), (0, None, 1), (3, None, 0), (None, "RANK", 0), (None, "LOCAL_RANK", 0)],
)
def test_only_the_first_of_its_like_starts_one(
    started: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    rank: int | None,
    variable: str | None,
    number: int,
) -> None:
    for name in ("RANK", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    if variable is not None:
        monkeypatch.setenv(variable, "3")

    with rs.Tracer(run="run", dir=tmp_path, rank=rank, viewer=True):
        pass
    assert len(started) == number


def test_a_port_and_staying_are_passed_on(started: list[list[str]], tmp_path: Path) -> None:
    for asked in (7078, "stay"):
        with rs.Tracer(run="run", dir=tmp_path, viewer=asked):
            pass
    with_port, staying = started
    assert with_port[-4:] == ["--port", "7078", "--until", "run"]
    assert staying[-2:] == ["--until", "stopped"]
    assert str(tmp_path / "run") in with_port


def test_without_files_there_is_nothing_to_view(
    started: list[list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), rs.Tracer(sink="none", viewer=True):
        pass
    assert started == []
    assert "no files to view" in caplog.text


def test_what_goes_to_a_server_is_viewed_there(
    started: list[list[str]], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    sink = "http://127.0.0.1:1/?token=hush-hush"
    with rs.Tracer(sink=sink, spool_dir=tmp_path, viewer=True):
        pass
    assert started == []
    assert "the page is on the server" in caplog.text
    assert "hush" not in caplog.text
