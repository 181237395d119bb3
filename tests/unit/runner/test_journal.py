"""The journal: what it keeps over a restart, how it is rewritten, and what it refuses."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.errors import StateError
from rollscope.runner import Retry, Runner, ctx
from rollscope.runner.journal import Journal, read_journal
from rollscope.runner.journal.records import Versioned

if TYPE_CHECKING:
    from pathlib import Path

LONG_S = 60.0


def make_runner(path: Path, **settings: Any) -> Runner:
    return Runner(loop="asyncio", probe_s=None, breaker=None, journal=path, **settings)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runner.journal"


async def double(number: int) -> int:
    return number * 2


async def park() -> None:
    await asyncio.Event().wait()


has_checkpoint = threading.Event()


async def go_on() -> Any:
    if ctx.partial is None:
        ctx.checkpoint("half way")
        has_checkpoint.set()
        await park()
    return ctx.partial


async def fail_twice() -> int:
    if (ctx.attempt or 0) <= 2:
        raise ConnectionError
    await park()
    return 0


has_replacement = threading.Event()
_failed: list[int | None] = []


async def fail_once_then_park() -> None:
    if not _failed:
        _failed.append(ctx.id)
        raise ValueError
    has_replacement.set()
    await park()


async def give_lambda() -> Any:
    return lambda: None


def test_a_runner_with_the_same_journal_goes_on_where_the_last_one_was(path: Path) -> None:
    with make_runner(path, cleanup_s=0.5) as runner:
        runner.set_version(3)
        for number in range(3):
            runner.submit(double, number)
        outcomes = runner.wait(3, LONG_S, order="submitted")
        runner.ack(outcomes[:1])
        runner.submit(go_on)
        assert has_checkpoint.wait(LONG_S)
    with make_runner(path) as second:
        assert second.version == 3
        values = {one.id: one.value for one in second.wait(3, LONG_S)}
        assert values == {1: 2, 2: 4, 3: "half way"}
        second.ack(values)
        assert second.submit(double, 1).id == 4
        second.ack(second.wait(1, LONG_S))
    state = read_journal(path)
    assert (state.inputs, state.outcomes, state.acked, state.next_id) == ([], [], 5, 5)


def test_what_is_acknowledged_after_the_end_is_kept_too(path: Path) -> None:
    runner = make_runner(path)
    with runner:
        runner.submit(double, 1)
        runner.submit(double, 2)
        assert runner._until(lambda: runner.ledger().outbox == 2, LONG_S)
    outcomes = runner.take_ready()
    assert runner.ack(outcomes[:1]) == 1
    assert [one.id for one in read_journal(path).outcomes] == [outcomes[1].id]


def test_attempts_are_counted_over_a_restart(path: Path) -> None:
    retry = Retry(rules={ConnectionError: "infra"}, per_task=5, base_s=0.0)
    with make_runner(path, retry=retry, cleanup_s=0.5) as runner:
        runner.submit(fail_twice)
        assert runner._until(lambda: runner.stats().retries == 2, LONG_S)
        assert runner.sync_journal(LONG_S)
        assert read_journal(path).inputs[0].attempts == 2


def test_what_happened_is_in_the_file_once_it_is_synced(path: Path) -> None:
    with make_runner(path) as runner:
        runner.submit(double, 1)
        assert runner.sync_journal(LONG_S)
        assert read_journal(path).next_id == 1
        runner.ack(runner.wait(1, LONG_S))
        assert runner.sync_journal(LONG_S)
        assert read_journal(path).acked == 1


def test_a_task_that_cannot_be_written_is_refused_at_its_submit(path: Path) -> None:
    with make_runner(path) as runner:
        with pytest.raises(StateError, match="the task double cannot be kept"):
            runner.submit(double, lambda: None)
        assert runner.ledger().submitted == 0
        runner.submit(double, 1)
        assert runner.sync_journal(LONG_S)
    assert read_journal(path).next_id == 1


def test_a_task_whose_outcome_cannot_be_written_runs_again(path: Path) -> None:
    with make_runner(path) as runner:
        runner.submit(give_lambda)
        (outcome,) = runner.wait(1, LONG_S)
    assert [one.id for one in read_journal(path).inputs] == [outcome.id]
    with make_runner(path) as second:
        (again,) = second.wait(1, LONG_S)
        assert again.id == outcome.id
        second.ack([again])
    assert read_journal(path).inputs == []


def test_a_value_that_is_changed_after_it_was_fetched_is_kept_as_it_was(path: Path) -> None:
    with make_runner(path) as runner:
        runner.submit(asyncio.sleep, 0, {"tokens": [1, 2]})
        runner.wait(1, LONG_S)[0].value.clear()
    with make_runner(path) as second:
        assert second.wait(1, LONG_S)[0].value == {"tokens": [1, 2]}


def test_groups_are_kept_whole(path: Path) -> None:
    with make_runner(path, cleanup_s=0.5) as runner:
        done, open_one = runner.group(2), runner.group(2)
        done.spawn_all(double, 3)
        done.result(LONG_S)
        open_one.submit(double, 5)
        open_one.submit(park)
        assert runner._until(lambda: runner.ledger().running == 1, LONG_S)
    with make_runner(path, cleanup_s=0.5) as second:
        assert second.wait_for(done.id, LONG_S).value == [6, 6]
        assert second._until(lambda: second.ledger().running == 1, LONG_S)
        second.cancel(group=open_one.id)
        assert second.wait_for(open_one.id, LONG_S).value == [10]


def test_new_ids_are_above_those_of_members_that_replaced_others(path: Path) -> None:
    with make_runner(path, cleanup_s=0.5) as runner:
        group = runner.group(1)
        group.submit(fail_once_then_park)
        assert has_replacement.wait(LONG_S)
        (report,) = runner.inspect()
    with make_runner(path, cleanup_s=0.5) as second:
        (again,) = second.inspect()
        assert again.id > report.id


def test_a_file_that_grows_too_big_is_rewritten_with_what_is_needed(path: Path) -> None:
    journal = Journal(path, max_bytes=5_000)
    journal.start()
    for version in range(2_000):
        journal.append(Versioned(version))
        if version % 100 == 0:
            assert journal.sync(LONG_S)
    assert journal.sync(LONG_S)
    journal.close()
    assert path.stat().st_size < 10_000
    assert read_journal(path).version == 1_999
    assert list(path.parent.iterdir()) == [path]


def test_a_torn_end_is_cut_off_and_writing_goes_on(path: Path) -> None:
    journal = Journal(path)
    journal.start()
    journal.append(Versioned(1))
    journal.close()
    with path.open("ab") as file:
        file.write(b"\x07\x00\x00")
    second = Journal(path)
    assert second.found.version == 1
    second.start()
    second.append(Versioned(2))
    second.close()
    assert read_journal(path).version == 2


@pytest.mark.parametrize("torn", [b"\x07", b"\x30\0\0\0\x01\x02\x03\x04\x92", bytes(64)])
def test_a_first_record_that_is_torn_is_cut_off(path: Path, torn: bytes) -> None:
    path.write_bytes(torn)
    journal = Journal(path)
    assert journal.found.is_empty
    journal.close()
    assert path.read_bytes() == b""


def test_a_file_that_is_no_journal_is_left_as_it_is(path: Path) -> None:
    path.write_text('{"prompt": "what is two and two?"}\n')
    before = path.read_bytes()
    with pytest.raises(StateError, match="is no journal"):
        make_runner(path).start()
    assert path.read_bytes() == before


def test_two_runners_do_not_write_one_journal(path: Path) -> None:
    with make_runner(path), pytest.raises(StateError, match="by another process"):
        make_runner(path).start()


def test_a_loaded_state_and_a_journal_with_content_contradict_each_other(path: Path) -> None:
    with make_runner(path) as runner:
        runner.submit(double, 1)
        runner.wait(1, LONG_S)
        state = runner.state_dict()
    second = make_runner(path)
    second.load_state_dict(state)
    with pytest.raises(StateError, match="has one too"):
        second.start()


def test_a_loaded_state_is_written_into_an_empty_journal(path: Path) -> None:
    with make_runner(path) as runner:
        runner.submit(double, 1)
        runner.wait(1, LONG_S)
        state = runner.state_dict()
    for name, load_first in (("before", True), ("after", False)):
        fresh = path.with_name(name)
        second = make_runner(fresh)
        if load_first:
            second.load_state_dict(state)
        with second:
            if not load_first:
                second.load_state_dict(state)
            assert second.sync_journal(LONG_S)
        assert [one.id for one in read_journal(fresh).outcomes] == [0]


def test_a_disk_that_fails_is_told_to_who_submits(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with make_runner(path) as runner:
        runner.submit(double, 1)
        (outcome,) = runner.wait(1, LONG_S)
        assert runner.sync_journal(LONG_S)
        monkeypatch.setattr(os, "fdatasync", fail)
        runner.submit(double, 2)
        with pytest.raises(StateError, match="No space left"):
            runner.sync_journal(LONG_S)
        for act in (lambda: runner.submit(double, 3), lambda: runner.ack([outcome])):
            with pytest.raises(StateError, match="No space left"):
                act()
        assert runner.wait(1, LONG_S)[0].value == 4
    assert "written no more" in caplog.text
