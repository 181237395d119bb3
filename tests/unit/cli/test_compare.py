from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from rollscope.analysis.filters import parse_filter
from rollscope.answers.compare import compare_runs, compare_selection
from rollscope.answers.scope import StepScope
from rollscope.cli.compare import split_side
from rollscope.screens.compare import comparison_screen, selection_screen
from rollscope.screens.tables import Screen
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


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Give two runs: the second takes more turns."""
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "before", msgspec.structs.replace(SHAPE, max_turns=2))
    make_run(folder / "after", msgspec.structs.replace(SHAPE, max_turns=8, seed=1))
    return str(folder / "before"), str(folder / "after")


def test_the_first_line_says_whether_sessions_take_longer(
    runs: tuple[str, str], capsys: Out
) -> None:
    text = read(capsys, "compare", *runs)
    assert text.startswith("Sessions of B take longer than those of A: ")
    assert "No phase differs clearly, call by call." in text
    assert "Calls per session, A to B: " in text  # more turns, each as long as before
    assert "A is before (" in text
    assert "B is after (" in text
    for word in ("session", "generate", "toolcall", "A p50", "B p99", "95 % interval", "effect"):
        assert word in text


def test_the_answer_is_given_as_json(runs: tuple[str, str], capsys: Out) -> None:
    answer = read_json(capsys, "compare", *runs)
    assert (answer["first"], answer["second"]) == ("before", "after")
    assert answer["phases"][0]["name"] == "session"
    assert answer["phases"][0]["is_clear"]


def test_steps_of_one_run_are_compared(runs: tuple[str, str], capsys: Out) -> None:
    before, _ = runs
    per_step = SHAPE.tasks_per_step * SHAPE.group_size
    written = read(capsys, "compare", f"{before}@0", f"{before}@1-2")
    assert f"A is step 0 ({per_step} measured sessions)" in written
    assert f"B is step 1-2 ({2 * per_step} measured sessions)" in written
    assert read(capsys, "compare", before, "--scope-a", "0", "--scope-b", "1-2") == written
    mixed = read(capsys, "compare", f"{runs[0]}@1", f"{runs[1]}@latest")
    assert "A is before@1 (" in mixed
    assert "B is after@3 (" in mixed


def test_a_selection_is_held_against_the_rest(runs: tuple[str, str], capsys: Out) -> None:
    _, after = runs
    text = read(capsys, "compare", after, "--filter", "ran>10s")
    answer = read_json(capsys, "compare", after, "--filter", "ran>10s")
    everyone = answer["chosen"] + answer["rest"]
    assert text.startswith(f"{answer['chosen']} of {everyone} sessions match 'ran>10s'. Most ")
    assert "What is different about them" in text
    (whole,) = (line for line in text.splitlines() if line.startswith("session "))
    assert "+" in whole  # what was chosen for being long is longer
    assert answer["differences"]["rows"][0]["column"] in text


def test_too_few_to_tell_is_said(runs: tuple[str, str], capsys: Out) -> None:
    text = read(capsys, "compare", runs[0], "--filter", "task:dream", "--scope", "1")
    assert text.startswith("No session matches 'task:dream', so there is nothing to compare.")
    text = read(capsys, "compare", runs[0], "--filter", "sample:0,1,2,3")
    assert text.startswith("All sessions match")


def test_both_kinds_fit_the_terminal(runs: tuple[str, str]) -> None:
    with RunStore(Path(runs[0])) as first, RunStore(Path(runs[1])) as second:
        both = compare_runs(first, StepScope(), second, StepScope())
        chosen = compare_selection(second, StepScope(), parse_filter("ran>10s"))
    for width in (80, 120, 160):
        text = comparison_screen(both, Screen(width=width))
        assert_fits(text, width)
        assert "- session: about +" in text or width >= 130
        assert text.count("effect") in (0, 2), "a column that is not shown is not explained"
        assert_fits(selection_screen(chosen, Screen(width=width), "ran>10s"), width)


@pytest.mark.parametrize(
    ("text", "run", "scope"),
    [
        ("runs/x", "runs/x", None),
        ("runs/x@3", "runs/x", "3"),
        ("runs/x@3-5", "runs/x", "3-5"),
        ("@latest", None, "latest"),
        ("me@home", "me@home", None),
        ("me@home@4", "me@home", "4"),
        (None, None, None),
    ],
)
def test_a_side_is_a_run_and_its_steps(
    text: str | None, run: str | None, scope: str | None
) -> None:
    assert split_side(text) == (run, scope)


def test_a_run_whose_name_looks_like_steps_is_a_run(tmp_path: Path) -> None:
    (tmp_path / "x@3").mkdir()
    assert split_side(str(tmp_path / "x@3")) == (str(tmp_path / "x@3"), None)


def test_odd_runs_are_told(tmp_path: Path, capsys: Out) -> None:
    empty = make_empty_run(tmp_path / "empty")
    stepless = make_stepless_run(tmp_path / "stepless")
    assert read(capsys, "compare", str(empty), str(stepless)).startswith(
        "There is nothing to compare: a side has no session that ended."
    )
    assert "Too few to tell" in read(capsys, "compare", str(stepless), "--filter", "sample:0")


def test_hostile_names_are_made_visible(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_screen(monkeypatch, 80)
    hostile = make_hostile_run(tmp_path / "hostile")
    stepless = make_stepless_run(tmp_path / "stepless")
    assert_fits(read(capsys, "compare", str(hostile), str(stepless)))
    assert_fits(read(capsys, "compare", str(hostile), "--filter", "sample:0"))


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([], "two sides are needed"),
        (["{run}"], "two sides are needed"),
        (["{run}", "{run}"], "both sides are the same"),
        (["{run}@1", "{run}@1"], "both sides are the same"),
        (["{run}", "{run}", "--filter", "ran>1s"], "give one run and --scope"),
        (["{run}", "{run}@1", "--scope", "1"], "--scope goes with --filter"),
        (["{run}", "--filter", "ran>"], "--filter: "),
    ],
)
def test_what_cannot_be_is_refused(
    runs: tuple[str, str], capsys: Out, argv: list[str], told: str
) -> None:
    code, complaint = refuse(capsys, "compare", *(word.format(run=runs[0]) for word in argv))
    assert code == 2
    assert told in complaint
