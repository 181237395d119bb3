from __future__ import annotations

import functools
from itertools import product
from typing import TYPE_CHECKING

import pytest

from rollscope.answers.hotspots import find_hotspots
from rollscope.answers.phases import Grouping, PhaseLine, Phases, phases
from rollscope.answers.scope import StepScope
from rollscope.model.kinds import Kind, Status
from rollscope.model.scope import Scope
from rollscope.screens.hotspots import hotspots_screen
from rollscope.screens.phases import phases_screen
from rollscope.screens.tables import Screen
from rollscope.store.embedded import RunStore
from tests.builders import EPOCH, dead_header, make_row, span_batch, write_log
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
    assert text.startswith("toolcall began ")
    assert "How long toolcall took" in text
    assert "from 100 ms" in text
    answer = read_json(capsys, "phases", str(run), "--phase", "toolcall")
    assert {line["name"] for line in answer["lines"]} == {"toolcall"}
    assert sum(one["count"] for one in answer["histogram"]) == answer["lines"][0]["measured"]
    lows = [one["low_ns"] for one in answer["histogram"]]
    assert lows == sorted(lows)
    assert all(one["low_ns"] < one["high_ns"] for one in answer["histogram"])


def test_a_phase_that_mostly_queues_is_said_to() -> None:
    judge = PhaseLine(
        name="reward",
        group="judge",
        count=41,
        measured=40,
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


def test_an_open_call_counts_as_in_hotspots(tmp_path: Path) -> None:
    scope = Scope(b"\x01" * 16, session_id=1)
    session = make_row(
        1, "session", kind=Kind.SESSION, scope=scope, status=Status.OPEN, start_ns=5 * SECOND
    )
    call = functools.partial(make_row, name="toolcall", kind=Kind.PHASE, scope=scope, parent_id=1)
    done = call(2, start_ns=5 * SECOND, end_ns=6 * SECOND)
    hanging = call(3, status=Status.OPEN, start_ns=10 * SECOND)
    write_log(tmp_path / "run" / "log" / "a.rsl", [span_batch(0, session, done, hanging)])
    with RunStore(tmp_path / "run", now_ns=EPOCH + 60 * SECOND) as store:
        answer = phases(store, StepScope())
        paths = find_hotspots(store, StepScope())
    (line,) = answer.lines
    (path,) = (row for row in paths.hotspots.rows if row.path == "session / toolcall")
    for one in (line, path):
        assert (one.count, one.measured, one.open_now) == (2, 1, 1)
        assert (one.total_ns, one.p50_ns, one.max_ns) == (51 * SECOND, SECOND, SECOND)
    text = phases_screen(answer, Screen(width=120))
    assert "p50 1.00 s, longest 1.00 s, 1 still open." in text
    assert "count and total include what did not end (1 open, up to now); p50 to max" in text
    text = hotspots_screen(paths, Screen(width=120))
    assert "self, share, count and total include what did not end (2 open, up to now);" in text


def test_a_phase_that_never_ended_has_no_lengths(tmp_path: Path, capsys: Out) -> None:
    scope = Scope(b"\x01" * 16, session_id=1)
    row = make_row(2, "reward", kind=Kind.PHASE, scope=scope, status=Status.OPEN)
    write_log(tmp_path / "run" / "log" / "a.rsl", [span_batch(0, row, header=dead_header())])
    for more in ([], ["--phase", "reward"]):
        text = read(capsys, "phases", str(tmp_path / "run"), *more)
        assert "none of it ended." in text
        assert "(1 lost, until last heard of)" in text


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
