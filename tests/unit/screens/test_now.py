from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import pytest
from rich.cells import cell_len

from rollscope.analysis.eta import Eta, Range
from rollscope.analysis.trainer import TrainerSplit
from rollscope.answers.now import Now, now
from rollscope.answers.overview import Overview, overview
from rollscope.answers.stuck import Stuck, stuck
from rollscope.answers.waits import StepWaits
from rollscope.model.refs import span_hex
from rollscope.screens.now import now_screen, show_phases, show_waits
from rollscope.screens.sheet import Sheet
from rollscope.screens.tables import Screen
from rollscope.screens.tiles import tiles_of
from rollscope.screens.words import say_number
from rollscope.store.embedded import RunStore
from rollscope.testing import RunShape, generate_run

if TYPE_CHECKING:
    from collections.abc import Iterator

S = 1_000_000_000
SHAPE = RunShape(
    steps=4, tasks_per_step=6, rollout_processes=2, slots=8, stuck_sessions=3, ends_last_step=False
)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Overview, Now, Stuck]]:
    """Give what is known of a run half a second after its last record."""
    path = tmp_path_factory.mktemp("now") / "run"
    truth = generate_run(path, SHAPE)
    with RunStore(path, threads=1, now_ns=truth.end_ns + 500_000_000) as store:
        yield overview(store), now(store), stuck(store)


def test_the_picture_has_the_numbers_of_the_answers(asked: tuple[Overview, Now, Stuck]) -> None:
    run, answer, judged = asked
    text = now_screen(run, answer, Screen())
    assert f"{judged.alarms} alarms, {judged.open_sessions} open sessions" in text
    assert f"in flight {answer.in_flight.count} of ~{answer.in_flight.capacity}" in text
    assert f"{say_number(answer.ended.rate, 1)} per min" in text
    assert f"{say_number(answer.tokens.rate, 0)} per s" in text
    for row in judged.rows:
        assert row.session_id is not None
        (line,) = [one for one in text.splitlines() if span_hex(row.session_id) in one]
        assert line.startswith(row.band)
        assert row.score is None or f"{row.score:.1f}" in line
    for host in answer.hosts.lines:
        assert re.search(rf"^{host.name} +{host.in_flight}\b", text, re.MULTILINE)
    for error in answer.errors.lines:
        assert re.search(rf"^ *{error.count} +{error.kind} ", text, re.MULTILINE)


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_the_picture_fits_its_terminal(asked: tuple[Overview, Now, Stuck], width: int) -> None:
    run, answer, _ = asked
    lines = now_screen(run, answer, Screen(width=width)).splitlines()
    assert max(cell_len(line) for line in lines) <= width


def test_no_value_of_a_tile_is_cut_in_eighty_columns(asked: tuple[Overview, Now, Stuck]) -> None:
    run, answer, _ = asked
    text = now_screen(run, answer, Screen(width=80))
    for tile in tiles_of(answer):
        assert tile.value in text


def test_the_end_of_a_step_is_told_as_such_and_no_tokens_as_a_dash(
    asked: tuple[Overview, Now, Stuck],
) -> None:
    answer = msgspec.structs.replace(asked[1])
    end = Range(p10_ns=answer.now_ns + S, p50_ns=answer.now_ns + S, p90_ns=answer.now_ns + 3 * S)
    eta = Eta(known=9, open=2, waiting=0, last_end=end, p95_end=end, step_end=end)
    answer.progress = msgspec.structs.replace(answer.progress, is_running=True, eta=eta)
    answer.tokens = msgspec.structs.replace(answer.tokens, rate=0.0, spark=[0.0])
    values = {tile.label: tile.value for tile in tiles_of(answer)}
    assert values["progress"].endswith(", ends in 1 s to 3 s")
    assert values["tokens"] == "-"


def test_only_ascii_is_used_where_there_is_nothing_else(
    asked: tuple[Overview, Now, Stuck],
) -> None:
    run, answer, _ = asked
    assert now_screen(run, answer, Screen(width=80, encoding="ascii")).isascii()


def test_small_phases_share_a_line_and_none_is_lost(asked: tuple[Overview, Now, Stuck]) -> None:
    _, answer, _ = asked
    sheet = Sheet(Screen(width=80))
    show_phases(sheet, answer.by_phase, most=2)
    _, *lines = sheet.text.splitlines()
    assert len(lines) == 2
    assert "others" in lines[1]
    shown = sum(int(re.findall(r" (\d+)  ", line)[0]) for line in lines)
    assert shown == answer.in_flight.count


def test_the_largest_cause_of_idle_slots_is_what_a_narrow_screen_keeps() -> None:
    trainer = TrainerSplit(
        wall_ns=100, train_ns=23, sync_ns=0, filling_ns=70, stragglers_ns=7, other_ns=0
    )
    waits = StepWaits(
        step=99,
        is_running=False,
        wall_ns=100,
        trainer=trainer,
        trainer_wait_share=0.77,
        slot_ns=100,
        busy_ns=39,
        idle_ns={"gate:staleness": 60, "paused": 1},
        idle_share=0.61,
        is_assumed=False,
        buffered=None,
        lag_p50=1,
        lag_max=3,
    )
    sheet = Sheet(Screen(width=78))
    show_waits(sheet, [waits])
    assert "61 %  gate:stal" in sheet.text
    assert "used 1" not in sheet.text
