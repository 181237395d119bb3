from __future__ import annotations

import functools
import json
import time
from typing import TYPE_CHECKING

import pytest

from rollscope.analysis.stuck import StuckRow
from rollscope.answers.stuck import Stuck, stuck
from rollscope.cli.main import main
from rollscope.cli.stuck import ALARM
from rollscope.model.kinds import Kind, Status
from rollscope.screens.stuck import Lost, look_at_lost, stuck_screen
from rollscope.screens.tables import Screen
from rollscope.store.embedded import RunStore
from tests.builders import EPOCH, make_row, span_batch, write_log
from tests.unit.cli.cases import (
    HOSTILE,
    SHAPE,
    Out,
    assert_fits,
    make_empty_run,
    make_hostile_run,
    make_run,
    read,
    read_json,
)

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000_000
NOBODY = Lost(count=0, names=[], last_seen_ns=None)
STACK = ["/app/loop.py:10 main", "/app/tools/browser.py:64 fetch", "/lib/asyncio/locks.py:213 wait"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a run whose processes count as alive 10 s after its end, two sessions hanging."""
    path = tmp_path_factory.mktemp("runs") / "hanging"
    make_run(path)
    return path


@pytest.fixture(scope="module")
def soon(run: Path) -> int:
    """Give a moment shortly after the last record."""
    with RunStore(run) as store:
        seen: int = store.query("SELECT max(last_seen_ns) AS t FROM processes")["t"][0].as_py()
    return seen + 2 * SECOND


def row(number: int = 1, **more: object) -> StuckRow:
    known: dict[str, object] = {
        "session_id": number,
        "task_key": "browse/1",
        "sample": number,
        "span_id": 100 + number,
        "name": "toolcall",
        "detail": "browser",
        "start_ns": 0,
        "age_ns": 840 * SECOND,
        "quiet_ns": 800 * SECOND,
        "score": 14.2,
        "band": "stuck",
        "host": "gpu-07",
        "process": "rollout 3",
        "stack": STACK,
        "stack_age_ns": SECOND,
    }
    return StuckRow(**{**known, **more})  # type: ignore[arg-type]


def show(*rows: StuckRow, width: int = 80, **more: object) -> str:
    sessions = [one for one in rows if one.session_id is not None]
    answer = Stuck(
        now_ns=900 * SECOND,
        open_sessions=212,
        alarms=sum(one.is_alarm for one in rows),
        rows=sessions,
        outside=[one for one in rows if one.session_id is None],
    )
    lost = more.pop("lost", NOBODY)
    text = stuck_screen(answer, Screen(width=width), lost=lost, **more)  # type: ignore[arg-type]
    assert_fits(text, width)
    return text


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_first_line_says_how_many_hang_where_and_for_how_long() -> None:
    text = flat(show(row(1), row(2, age_ns=60 * SECOND), row(3)))
    assert text.startswith(
        "3 sessions are stuck, the oldest in toolcall browser for 14 m 00 s at browser.py:64 fetch "
        "> locks.py:213 wait; 212 open."
    )


def test_one_alone_is_not_called_the_oldest() -> None:
    assert flat(show(row(1))).startswith("1 session is stuck, in toolcall browser for 14 m 00 s at")


def test_kinds_of_alarm_are_told_apart() -> None:
    text = flat(show(row(1), row(2, band="silent"), row(3, band="overdue"), row(4, band="silent")))
    assert text.startswith("1 session is stuck, 1 overdue, 2 silent, the oldest in")


def test_slow_is_no_alarm() -> None:
    text = flat(show(row(1, band="slow", score=1.4, stack=[]), row(2, band="fine", age_ns=SECOND)))
    assert text.startswith(
        "Nothing is stuck; 212 open, the oldest in toolcall browser for 14 m 00 s; 1 slow"
    )


def test_a_row_says_what_is_needed_to_act_on_it() -> None:
    text = show(row(7, is_approximate=True, attempt=1, same_line=4), width=200)
    (line,) = (line for line in text.splitlines() if line.startswith("stuck "))
    for word in (
        "~14.2",
        "14 m 00 s",
        "13 m 20 s",
        "browse/1#7",
        "toolcall browser",
        "gpu-07/rollout 3",
        "browser.py:64 fetch > locks.py:213 wait (+4)",
        "0000000000000007",
    ):
        assert word in line


@pytest.mark.parametrize(("name", "alarms"), [("idle", 0), ("queue_empty", 0), ("generate", 1)])
def test_an_engine_without_work_does_not_hang(tmp_path: Path, name: str, alarms: int) -> None:
    state = functools.partial(make_row, name=name, kind=Kind.STATE)
    rows = [
        state(number, start_ns=number * SECOND, end_ns=(number + 1) * SECOND)
        for number in range(1, 31)
    ]
    rows.append(state(40, status=Status.OPEN, start_ns=40 * SECOND))
    write_log(tmp_path / "run" / "log" / "a.rsl", [span_batch(0, *rows)])
    with RunStore(tmp_path / "run", now_ns=EPOCH + 55 * SECOND) as store:
        assert stuck(store).alarms == alarms


def test_bands_can_be_left_out() -> None:
    rows = row(1), row(2, band="slow", sample=2), row(3, band="fine"), row(4, band="unknown")
    assert "slow " in show(*rows, min_band="slow")
    assert "fine " not in show(*rows, min_band="slow")
    only = show(*rows, min_band="stuck")
    assert "slow " not in only
    assert "unknown " not in only
    assert "stuck " in only


def test_what_does_not_fit_is_counted() -> None:
    rows = [row(number) for number in range(30)]
    assert "Not listed: 18 open, 0 of them fine; --all lists them." in show(*rows)
    assert "Not listed" not in show(*rows, is_all=True)


def test_what_is_fine_is_listed_only_where_little_else_is() -> None:
    rows = [row(1), *(row(number, band="fine", score=0.1) for number in range(2, 9))]
    assert show(*rows).count("\nfine ") == 2
    assert "Not listed: 5 open, 5 of them fine; --all lists them." in show(*rows)
    assert show(*rows, is_all=True).count("\nfine ") == 7


def test_sessions_that_wait_at_one_line_are_named_together() -> None:
    text = flat(show(*(row(number) for number in range(6)), row(9, stack=["/app/a.py:1 run"])))
    assert "- browser.py:64 fetch > locks.py:213 wait: browse/1#0, " in text
    assert "browse/1#3 and 2 more" in text
    assert "- a.py:1 run: browse/1#9" in text


def test_an_alarm_without_a_score_comes_before_what_is_fine() -> None:
    rows = [row(number, band="fine", score=0.1) for number in range(5)]
    lines = show(*rows, row(8, band="silent", score=None)).splitlines()
    bands = [line.split()[0] for line in lines if line.startswith(("fine ", "silent "))]
    assert bands == ["silent", "fine", "fine"]


def test_whole_chains_are_printed_on_request() -> None:
    text = show(row(1), row(2), has_stacks=True)
    assert text.count("/app/loop.py:10 main") == 1


def test_where_no_line_of_code_is_known_it_says_when_there_is_one() -> None:
    hint = "No line of code is recorded: a span gets one once it is open for stack_after_s"
    assert hint in flat(show(row(1, stack=[])))
    assert hint in flat(show(row(1, band="fine", stack=[]), has_stacks=True))
    assert hint not in flat(show(row(1, band="fine", stack=[])))


def test_a_span_outside_of_sessions_is_told_if_it_is_an_alarm() -> None:
    hung = row(1, session_id=None, name="weights.publish", detail=None, process="trainer 0")
    text = flat(show(row(2), hung))
    assert (
        "Outside of sessions 1 span hangs too: weights.publish on trainer 0 for 14 m 00 s." in text
    )
    assert "(no session)" in text
    assert "(no session)" not in show(row(2), row(1, session_id=None, band="fine"))


def test_a_live_run_shows_the_sessions_that_hang(run: Path, soon: int) -> None:
    with RunStore(run, now_ns=soon) as store:
        answer = stuck(store)
        text = stuck_screen(answer, Screen(width=80), lost=look_at_lost(store))
    assert answer.open_sessions == SHAPE.stuck_sessions
    assert_fits(text)
    assert "2 open" in text
    assert "toolcall " in text


def test_a_run_that_is_over_says_so_and_names_the_lost(run: Path, capsys: Out) -> None:
    text = flat(read(capsys, "stuck", str(run)))
    assert text.startswith("Nothing is open, so nothing is stuck. 2 sessions were lost when their")
    assert "The run was last heard of" in text


def test_an_empty_run_has_nothing_open(tmp_path: Path, capsys: Out) -> None:
    empty = make_empty_run(tmp_path / "empty")
    assert read(capsys, "stuck", str(empty)).startswith("Nothing is open, so nothing is stuck.")


def test_the_answer_is_given_as_json(run: Path, capsys: Out) -> None:
    answer = read_json(capsys, "stuck", str(run))
    assert set(answer) == {"now_ns", "open_sessions", "alarms", "rows", "outside"}


def alarm(source: object) -> Stuck:
    return Stuck(now_ns=1, open_sessions=1, alarms=1, rows=[row(1)], outside=[])


def test_alarms_change_the_exit_code_only_on_request(
    run: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["stuck", str(run), "--fail"]) == 0
    monkeypatch.setattr("rollscope.answers.stuck.stuck", alarm)
    assert main(["stuck", str(run)]) == 0
    assert main(["stuck", str(run), "--fail"]) == ALARM == 3
    assert main(["stuck", str(run), "--fail", "--json"]) == 3
    capsys.readouterr()


def test_the_help_names_the_exit_codes(capsys: Out) -> None:
    with pytest.raises(SystemExit):
        main(["stuck", "--help"])
    assert "exit codes: 0 done; 3 with --fail" in capsys.readouterr().out


def test_watching_looks_again_until_it_is_interrupted(
    run: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", wait)
    assert main(["stuck", str(run), "--watch", "0.5", "--json"]) == 0
    assert waits == [0.5] * 3
    lines = capsys.readouterr().out.splitlines()
    assert len([json.loads(line) for line in lines]) == 3


def test_watching_with_fail_ends_at_the_first_alarm(
    run: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollscope.answers.stuck.stuck", alarm)
    assert main(["stuck", str(run), "--watch", "--fail"]) == 3
    assert "1 session is stuck" in capsys.readouterr().out


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "nan"])
def test_a_wrong_pace_is_refused(run: Path, capsys: Out, seconds: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["stuck", str(run), f"--watch={seconds}"])
    assert ended.value.code == 2
    assert "is no number of seconds" in capsys.readouterr().err


def test_hostile_names_are_made_visible(tmp_path: Path) -> None:
    text = show(row(1, task_key=HOSTILE, detail=HOSTILE, host=HOSTILE, stack=[HOSTILE]))
    assert "\\x1b[31mred" in text
    with RunStore(make_hostile_run(tmp_path / "hostile")) as store:
        assert look_at_lost(store).count == 0
