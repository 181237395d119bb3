from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import msgspec
import pytest

from rollscope.analysis.changes import Change, Changes
from rollscope.analysis.eta import Eta, Range
from rollscope.answers.steps import StepAnswer, Steps, one_step, steps
from rollscope.cli import reading
from rollscope.cli.terminal import pager
from rollscope.screens.step import step_screen
from rollscope.screens.steps import steps_screen
from rollscope.screens.tables import Screen
from rollscope.store.embedded import RunStore
from rollscope.testing import RunShape
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
NOW = 1_790_000_100 * SECOND


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "small"
    make_run(path)
    return path


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_verdict_of_the_last_step_stands_above_the_table(run: Path, capsys: Out) -> None:
    text = read(capsys, "steps", str(run))
    answer = read_json(capsys, "steps", str(run))
    verdict = answer["steps"][-1]["verdict"]
    lines = text.splitlines()
    assert lines[0] == verdict["opening"]
    assert lines[0].startswith("Step 3 took ")
    for finding in verdict["findings"]:
        assert f"- {finding['sentence']}" in lines
    head = next(at for at, line in enumerate(lines) if line.startswith("step "))
    assert len(verdict["findings"]) < head
    for word in ("wall", "vs median", "outcomes", "tail", "wait", "waste", "tok/s", "because"):
        assert word in lines[head]
    assert [line.split()[0] for line in lines[head + 1 : head + 5]] == ["0", "1", "2", "3"]
    assert "wall, steps 0 to 3: " in text


def test_the_slowest_step_is_pointed_to_with_a_command_that_can_be_pasted(
    run: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "own_command", lambda: "rollscope")
    lines = read_json(capsys, "steps", str(run))["steps"]
    slowest = max(lines, key=lambda line: line["summary"]["wall_ns"])["summary"]["step"]
    last = read(capsys, "steps", str(run)).splitlines()[-1]
    command = f"rollscope steps {run} --step {slowest}"
    assert last.startswith(f"Why step {slowest} took longest, ")
    assert last.endswith(f": {command}")
    told = read(capsys, *command.split()[1:]).splitlines()
    assert told[0].startswith(f"Step {slowest} took ")
    first = told[told.index("Slowest sessions") + 2].split()[0]
    _, command = told[-1].split(" turn by turn: ")
    assert read(capsys, *command.split()[1:]).startswith(f"{first} ")
    picture = read(capsys, "top", str(run), "--once")
    assert f": rollscope steps {run} --step {slowest}\n" in picture


def test_sessions_that_no_step_has_consumed_are_told_apart(listed: Steps) -> None:
    answer = copy.deepcopy(listed)
    summary = answer.steps[-1].summary
    summary.sessions, summary.unconsumed = 192, 96
    summary.outcomes = {"accepted": 150, "none": 2, "open": 40}
    text = steps_screen(answer, Screen(width=200))
    assert "  192 (96)  150 accepted, 40 open, 2 without outcome  " in text
    assert "sessions: in brackets, those that no step has consumed" in text


def test_only_as_many_steps_are_listed_as_asked_for(run: Path, capsys: Out) -> None:
    assert [
        line["summary"]["step"]
        for line in read_json(capsys, "steps", str(run), "--last", "2")["steps"]
    ] == [2, 3]
    assert "wall, steps 2 to 3 of 4: " in read(capsys, "steps", str(run), "--last", "2")
    assert "wall, steps 1 to 2 of 4: " in read(capsys, "steps", str(run), "--scope", "1-2")


def test_a_step_is_told_from_its_verdict_to_its_slowest_sessions(run: Path, capsys: Out) -> None:
    text = read(capsys, "steps", str(run), "--step", "2")
    parts = [
        "Step 2 took ",
        "Try: ",
        "Critical path: what its end waited for",
        "Who waits",
        "Tail",
        "Sessions: ",
        "Thrown away",
        "Staleness, in versions behind",
        "Weight sync",
        "Replicas: ",
        "What if there had been more slots, or fewer?",
        "Slowest sessions",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert read_json(capsys, "steps", str(run), "--step", "2")["summary"]["step"] == 2


def test_the_first_screen_holds_the_verdict_the_path_and_who_waits(told: StepAnswer) -> None:
    first = step_screen(told, Screen(width=80), now_ns=NOW).splitlines()[:23]
    assert any(line.startswith("Critical path") for line in first)
    assert any(line.startswith(" trainer ") for line in first)


def test_those_who_held_the_tail_can_be_opened(run: Path, told: StepAnswer, capsys: Out) -> None:
    text = step_screen(told, Screen(width=80), now_ns=NOW)
    first = told.holders[0]
    name = f"{first.task_key}#{first.sample}"
    identity = f"{first.span_id:016x}"
    (line,) = (
        line
        for line in text[text.index("Tail") : text.index("Sessions: ")].splitlines()
        if line.strip().startswith(f"{name} ")
    )
    assert line.endswith(identity)
    assert read(capsys, "show", str(run), identity).startswith(f"{name} ")


def test_the_path_adds_up_in_words(told: StepAnswer) -> None:
    text = flat(step_screen(told, Screen(width=80), now_ns=NOW))
    assert "= " in text[text.index("These") : text.index("Who waits")]
    assert "In all: " in text


@pytest.fixture(scope="module")
def listed(run: Path) -> Steps:
    with RunStore(run) as store:
        return steps(store)


@pytest.fixture(scope="module")
def told(run: Path) -> StepAnswer:
    with RunStore(run) as store:
        return one_step(store, 2)


def test_both_fit_the_terminal(listed: Steps, told: StepAnswer) -> None:
    for width in (80, 100, 160):
        assert_fits(steps_screen(listed, Screen(width=width)), width)
        assert_fits(step_screen(told, Screen(width=width), now_ns=NOW), width)


def test_ascii_is_enough(listed: Steps, told: StepAnswer) -> None:
    screen = Screen(width=80, encoding="ascii")
    assert steps_screen(listed, screen).isascii()
    assert step_screen(told, screen, now_ns=NOW).isascii()


def test_a_running_step_says_when_it_will_end(told: StepAnswer) -> None:
    answer, now_ns = msgspec.structs.replace(told), NOW
    end = Range(p10_ns=now_ns + 4 * SECOND, p50_ns=now_ns + 6 * SECOND, p90_ns=now_ns + 9 * SECOND)
    answer.eta = Eta(
        known=120, open=12, waiting=3, last_end=end, p95_end=end, step_end=end, outliers=[1, 2]
    )
    text = flat(step_screen(answer, Screen(width=80), now_ns=now_ns))
    assert "It should end in 4 s to 9 s, about " in text
    assert "(12 in flight, 3 to start; from 120 earlier sessions)" in text
    assert "2 sessions are older than anything seen" in text
    answer.eta = Eta(known=0, open=12, waiting=0, last_end=None, p95_end=None, step_end=None)
    text = flat(step_screen(answer, Screen(width=80), now_ns=now_ns))
    assert "When it ends cannot be told yet: 12 in flight." in text


def test_changes_are_dated(listed: Steps) -> None:
    answer = msgspec.structs.replace(listed)
    marks = [Change("wall", 17, 20.0, 31.0, 0.35), Change("share of env", 9, 0.04, 0.17, 0.7)]
    answer.changes = Changes(marks, marks)
    text = steps_screen(answer, Screen(width=80))
    assert "Since step 17: wall went from 20.0 s to 31.0 s." in text
    assert "Since step 9: share of env went from 4 % to 17 %." in text


def test_a_step_that_runs_is_marked(listed: Steps) -> None:
    answer = copy.deepcopy(listed)
    answer.steps[-1].summary.is_open = True
    assert "\n  3*  " in steps_screen(answer, Screen(width=160))
    assert " running\n" in steps_screen(answer, Screen(width=200))


def test_a_run_with_faults_fits_too(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path / "faulty", RunShape(steps=2, tasks_per_step=12))
    set_screen(monkeypatch, 80)
    monkeypatch.chdir(tmp_path)
    assert_fits(read(capsys, "steps", "faulty", "--scope", "latest"))


def test_odd_runs_are_told(tmp_path: Path, capsys: Out) -> None:
    empty = make_empty_run(tmp_path / "empty")
    assert read(capsys, "steps", str(empty)) == "The run has no steps and no sessions.\n"
    stepless = make_stepless_run(tmp_path / "stepless")
    for scope in ([], ["--scope", "latest"]):
        text = read(capsys, "steps", str(stepless), *scope)
        assert text.startswith("The run records no steps; it has 3 sessions outside of any.")


def test_hostile_names_are_made_visible(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_screen(monkeypatch, 80)
    make_hostile_run(tmp_path / "hostile")
    monkeypatch.chdir(tmp_path)
    assert_fits(read(capsys, "steps", "hostile"))
    assert_fits(read(capsys, "steps", "hostile", "--step", "0"))


def test_what_cannot_be_is_refused(run: Path, capsys: Out) -> None:
    assert refuse(capsys, "steps", str(run), "--last", "0")[0] == 2
    code, complaint = refuse(capsys, "steps", str(run), "--step", "9")
    assert (code, complaint) == (1, "rollscope: the run has no step 9; it has 0 to 3\n")


def test_what_is_taller_than_the_terminal_goes_to_a_pager(
    run: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    paged = tmp_path / "paged"
    monkeypatch.setenv("PAGER", f"tee {paged}")
    monkeypatch.setattr(pager, "_height", lambda: 24)
    read(capsys, "steps", str(run), "--step", "2")
    assert paged.read_text().startswith("Step 2 took ")
    paged.unlink()
    assert read(capsys, "steps", str(run)).startswith("Step 3 took ")  # it fits
    monkeypatch.setenv("PAGER", "cat")
    assert read(capsys, "steps", str(run), "--step", "2").startswith("Step 2 took ")
    assert not paged.exists()


def test_only_columns_that_are_shown_are_explained(tmp_path: Path, capsys: Out) -> None:
    make_run(tmp_path / "one", RunShape(steps=1, tasks_per_step=3))
    text = read(capsys, "steps", str(tmp_path / "one"))
    assert "tail: after 95 %" in text
    assert "vs median" not in text
