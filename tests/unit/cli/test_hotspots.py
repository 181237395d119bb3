from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from rollscope.answers.hotspots import HotspotGrouping, find_hotspots
from rollscope.answers.scope import StepScope
from rollscope.screens.hotspots import hotspots_screen
from rollscope.screens.tables import Screen
from rollscope.store.embedded import RunStore
from tests.unit.cli.cases import (
    Out,
    assert_fits,
    make_empty_run,
    make_hostile_run,
    make_run,
    make_stepless_run,
    read,
    read_json,
    refuse,
    set_screen,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "small"
    make_run(path)
    return path


def test_the_first_line_names_what_holds_most(run: Path, capsys: Out) -> None:
    text = read(capsys, "hotspots", str(run))
    (top, *_) = read_json(capsys, "hotspots", str(run))["hotspots"]["rows"]
    name = top["path"].removeprefix("session / ")
    assert text.startswith(
        f"{name} holds {top['share'] * 100:.0f} % of all session time in the run"
    )


def test_the_parts_make_the_whole(run: Path, capsys: Out) -> None:
    answer = read_json(capsys, "hotspots", str(run))["hotspots"]
    footer = answer["footer"]
    assert sum(row["self_ns"] for row in answer["rows"]) == (
        footer["session_ns"] + footer["overlap_ns"]
    )
    assert "The sum: " in read(capsys, "hotspots", str(run))


def test_too_few_spans_get_a_dash_and_a_note(run: Path, capsys: Out) -> None:
    text = read(capsys, "hotspots", str(run), "--scope", "1")
    assert "- where fewer than 20 spans (p95) or 100 (p99) ended." in text


def test_every_grouping_fits_the_terminal(run: Path) -> None:
    groupings: tuple[HotspotGrouping, ...] = ("path", "name", "host", "tool", "family")
    with RunStore(run) as store:
        answers = [find_hotspots(store, StepScope(), by) for by in groupings]
    for answer, width in product(answers, (80, 120, 160)):
        text = hotspots_screen(answer, Screen(width=width))
        assert_fits(text, width)
        assert "generate" in text
        if answer.grouped_by in ("host", "family"):
            assert f" {answer.grouped_by} " in text


def test_rows_beyond_the_limit_are_counted(run: Path, capsys: Out) -> None:
    assert "more rows with" in read(capsys, "hotspots", str(run), "--limit", "2")
    assert "more rows" not in read(capsys, "hotspots", str(run), "--limit", "0")


def test_what_lies_outside_of_sessions_can_be_asked_for(run: Path, capsys: Out) -> None:
    text = read(capsys, "hotspots", str(run), "--outside")
    assert "of all time outside of sessions" in text
    assert "train" in text
    assert "(in no child)" not in text


def test_ascii_is_enough(run: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    set_screen(monkeypatch, 80, "ascii")
    assert read(capsys, "hotspots", str(run)).isascii()


def test_odd_runs_are_told(tmp_path: Path, capsys: Out) -> None:
    empty = make_empty_run(tmp_path / "empty")
    assert read(capsys, "hotspots", str(empty)) == "There are no sessions in the run.\n"
    stepless = make_stepless_run(tmp_path / "stepless")
    assert "generate" in read(capsys, "hotspots", str(stepless), "--scope", "latest")


def test_hostile_names_are_made_visible(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_screen(monkeypatch, 80)
    hostile = make_hostile_run(tmp_path / "hostile")
    for by in ("path", "tool"):
        assert_fits(read(capsys, "hotspots", str(hostile), "--by", by))


def test_what_cannot_be_is_refused(run: Path, capsys: Out) -> None:
    assert refuse(capsys, "hotspots", str(run), "--limit", "-1")[0] == 2
    code, complaint = refuse(capsys, "hotspots", str(run), "--scope", "9")
    assert (code, "it has 0 to 3" in complaint) == (1, True)
    assert refuse(capsys, "hotspots", str(run), "--scope", "some")[0] == 2
