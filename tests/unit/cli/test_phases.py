from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from rollscope.answers.phases import Grouping, PhaseLine, Phases, phases
from rollscope.answers.scope import StepScope
from rollscope.screens.phases import phases_screen
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

SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "small"
    make_run(path)
    return path


def test_the_first_line_names_the_longest_phase(run: Path, capsys: Out) -> None:
    text = read(capsys, "phases", str(run))
    assert text.startswith("generate takes most: ")
    assert "of all phase time in the run, p50 " in text


def test_every_grouping_fits_the_terminal(run: Path) -> None:
    groupings: tuple[Grouping, ...] = ("name", "detail", "family", "worker")
    with RunStore(run) as store:
        answers = [phases(store, StepScope(), by) for by in groupings]
    for answer, width in product(answers, (80, 120, 160)):
        text = phases_screen(answer, Screen(width=width))
        assert_fits(text, width)
        for head in ("phase", "p50", "p95"):
            assert head in text


def test_errors_are_listed_by_kind_with_an_example_to_open(run: Path, capsys: Out) -> None:
    text = read(capsys, "phases", str(run))
    (first, *_) = read_json(capsys, "phases", str(run))["errors"]
    (line,) = (one for one in text.splitlines() if one.startswith(f"{first['kind']} "))
    example = first["example_session"]
    assert example in line
    assert read(capsys, "show", str(run), example)


def test_one_phase_comes_with_how_its_durations_are_spread(run: Path, capsys: Out) -> None:
    text = read(capsys, "phases", str(run), "--phase", "toolcall")
    assert text.startswith("toolcall ended ")
    assert "How long toolcall took" in text
    assert "from 100 ms" in text
    answer = read_json(capsys, "phases", str(run), "--phase", "toolcall")
    assert {line["name"] for line in answer["lines"]} == {"toolcall"}
    assert sum(one["count"] for one in answer["histogram"]) == answer["lines"][0]["count"]
    lows = [one["low_ns"] for one in answer["histogram"]]
    assert lows == sorted(lows)
    assert all(one["low_ns"] < one["high_ns"] for one in answer["histogram"])


def test_a_phase_that_mostly_queues_is_said_to() -> None:
    judge = PhaseLine(
        name="reward",
        group="judge",
        count=40,
        total_ns=40 * SECOND,
        p50_ns=SECOND,
        p95_ns=3 * SECOND,
        p99_ns=None,
        max_ns=4 * SECOND,
        queue_p50_ns=SECOND // 2,
        queue_p95_ns=2 * SECOND,
        queue_share=0.8,
        errors=0,
        open_now=1,
    )
    answer = Phases(scope="3", grouped_by="detail", lines=[judge], errors=[])
    text = phases_screen(answer, Screen(width=120))
    assert text.startswith("reward (judge) takes most: 100 % of all phase time in step 3")
    assert "reward (judge) is mostly queueing: 80 % of its time." in text
    for word in ("queue", "80 %", "q50", "500 ms", "q95", "2.00 s", "open"):
        assert word in text


def test_an_unknown_phase_is_told_with_those_there_are(run: Path, capsys: Out) -> None:
    code, complaint = refuse(capsys, "phases", str(run), "--phase", "dream")
    assert code == 1
    assert "there are generate, reward, toolcall" in complaint


def test_odd_runs_are_told(tmp_path: Path, capsys: Out) -> None:
    empty = make_empty_run(tmp_path / "empty")
    assert read(capsys, "phases", str(empty)) == "There are no phases in the run.\n"
    stepless = make_stepless_run(tmp_path / "stepless")
    assert "- where fewer than 20" in read(capsys, "phases", str(stepless), "--scope", "latest")


def test_hostile_names_are_made_visible(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_screen(monkeypatch, 80)
    hostile = make_hostile_run(tmp_path / "hostile")
    for by in ("name", "detail"):
        assert_fits(read(capsys, "phases", str(hostile), "--by", by))
