from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollscope.analysis.rows import SessionRow
from rollscope.answers.scope import StepScope
from rollscope.answers.sessions import SessionLine, SessionList, list_sessions
from rollscope.cli.main import make_parser
from rollscope.screens.sessions import sessions_screen
from rollscope.screens.tables import Screen
from rollscope.screens.words import assign_letters, letter_bar
from rollscope.store.embedded import RunStore
from tests.unit.cli.cases import (
    SHAPE,
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

ALL = SHAPE.steps * SHAPE.tasks_per_step * SHAPE.group_size


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "small"
    make_run(path)
    return path


def test_the_first_line_says_how_many_there_are_and_in_which_order(run: Path, capsys: Out) -> None:
    assert read(capsys, "sessions", str(run)).startswith(
        f"{ALL} sessions in the run, newest first.\nThe 15 listed: "
    )


def test_a_filter_narrows_them_down(run: Path, capsys: Out) -> None:
    text = read(capsys, "sessions", str(run), "--filter", "outcome:rejected", "--scope", "1-2")
    answer = read_json(
        capsys, "sessions", str(run), "--filter", "outcome:rejected", "--scope", "1-2"
    )
    assert text.startswith(f"{answer['matched']} sessions of {ALL // 2} in step 1-2 match")
    assert {line["row"]["outcome"] for line in answer["sessions"]} == {"rejected"}
    assert "accepted" not in text


def test_a_filter_that_lets_nothing_through_is_told(run: Path, capsys: Out) -> None:
    text = read(capsys, "sessions", str(run), "--filter", "ran>99h")
    assert text == f"None of the {ALL} sessions in the run match.\n"


def test_an_unreadable_filter_is_pointed_at(run: Path, capsys: Out) -> None:
    code, complaint = refuse(capsys, "sessions", str(run), "--filter", "phase:a >3s")
    first, second, third = complaint.splitlines()
    assert code == 2
    assert first.startswith("rollscope: --filter: ")
    assert second == "  phase:a >3s"
    assert second[third.index("^")] == ">"


@pytest.mark.parametrize("key", ["start", "end", "ran", "waited", "reward", "tokens"])
def test_every_order_has_words_and_may_be_turned_round(key: str) -> None:
    both = ("--sort", key), ("--sort", f"-{key}")
    orders = [make_parser().parse_args(["sessions", "runs/x", *words]).sort for words in both]
    assert orders == [key, f"-{key}"]
    listed = SessionList(sessions=[], matched=3, of=3)
    first, second = (sessions_screen(listed, Screen(width=80), sort=order) for order in orders)
    assert first.startswith("3 sessions in the run, ")
    assert first != second


def test_the_longest_is_first_where_asked_for(run: Path, capsys: Out) -> None:
    answer = read_json(capsys, "sessions", str(run), "--sort", "-ran")
    lengths = [line["ran_ns"] for line in answer["sessions"]]
    assert lengths == sorted(lengths, reverse=True)
    assert "longest first" in read(capsys, "sessions", str(run), "--sort", "-ran")


def test_times_count_back_from_the_end_of_a_run_that_is_over(run: Path, capsys: Out) -> None:
    with RunStore(run) as store:
        table = store.query("SELECT max(last_seen_ns) AS end FROM processes")
    end_ns = table["end"][0].as_py()
    since_ns = end_ns - 10_000_000_000
    answer = read_json(capsys, "sessions", str(run), "--since", "-10s", "--limit", "1000")
    assert 0 < answer["matched"] < ALL
    for line in answer["sessions"]:
        assert line["row"]["end_ns"] is None or line["row"]["end_ns"] >= since_ns
    length = (end_ns - SHAPE.start_ns) // 2_000_000_000
    until = f"-{length}s"
    earlier = read_json(capsys, "sessions", str(run), "--until", until, "--limit", "1000")
    assert 0 < earlier["matched"] < ALL


def test_they_fit_the_terminal(run: Path) -> None:
    with RunStore(run) as store:
        answer = list_sessions(store, StepScope())
    for width in (80, 100, 160):
        text = sessions_screen(answer, Screen(width=width))
        assert_fits(text, width)
        for head in ("session", "ran", "phases", "outcome", "id"):
            assert head in text.splitlines()[3]
        assert "phases: g generate, " in text


def test_phases_are_drawn_as_letters_of_their_own() -> None:
    letters = assign_letters(["generate", "gate", "reward", "12"])
    assert letters == {"generate": "g", "gate": "a", "reward": "r", "12": "b"}
    assert letter_bar({"generate": 60, "reward": 20}, 100, letters, 10) == "ggggggrr.."
    assert letter_bar({"generate": 100}, 100, letters, 4) == "gggg"
    assert letter_bar({}, 0, letters, 4) == ""


def test_phases_are_drawn_in_the_order_in_which_they_began() -> None:
    row = SessionRow(span_id=1, task_key="math/1", start_ns=0, end_ns=120)
    phases = {"generate": 20, "reward": 80}
    line = SessionLine(row=row, ran_ns=120, phases=phases, other_ns=20, lag=None)
    text = sessions_screen(SessionList(sessions=[line], matched=1, of=1), Screen(width=160))
    assert " ggrrrrrrrr.. " in text


def test_odd_runs_are_told(tmp_path: Path, capsys: Out) -> None:
    empty = make_empty_run(tmp_path / "empty")
    assert read(capsys, "sessions", str(empty)) == "There are no sessions in the run.\n"
    stepless = make_stepless_run(tmp_path / "stepless")
    assert read(capsys, "sessions", str(stepless)).startswith("3 sessions in the run, newest first")


def test_hostile_names_are_made_visible(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_screen(monkeypatch, 80)
    hostile = make_hostile_run(tmp_path / "hostile")
    assert_fits(read(capsys, "sessions", str(hostile)))


@pytest.mark.parametrize(
    "argv",
    [
        ["--limit", "0"],
        ["--sort", "beauty"],
        ["--since", "soon"],
        ["--since", "-5m", "--until", "-10m"],
        ["--scope", "5-3"],
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(run: Path, capsys: Out, argv: list[str]) -> None:
    assert refuse(capsys, "sessions", str(run), *argv)[0] == 2
