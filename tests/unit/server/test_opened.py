from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from rollscope.errors import StoreError
from rollscope.instrument.tracer import Tracer
from rollscope.server.failures import Failure
from rollscope.server.opened import OpenRun
from rollscope.server.timelines import current_timeline
from rollscope.store.embedded import RunStore
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rollscope.server.progress import RunProgress

T = TypeVar("T")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "first"
    generate_run(run, RunShape.sized(200))
    return run


def with_run(
    path: Path,
    visit: Callable[[OpenRun], Awaitable[T]],
    tell: Callable[[RunProgress], None] = lambda _: None,
) -> T:
    async def scenario() -> T:
        run = OpenRun("first", path, tell, threads=1)
        try:
            return await visit(run)
        finally:
            run.close(at_once=True)
            run.join(30)

    return asyncio.run(scenario())


def count(store: RunStore) -> int:
    return int(store.query("SELECT count(*) AS n FROM spans")["n"][0].as_py())


def test_jobs_are_done_by_one_thread_in_their_order(path: Path) -> None:
    async def visit(run: OpenRun) -> list[int]:
        done: list[int] = []

        def note(number: int) -> Callable[[RunStore], None]:
            return lambda _: done.append(number)

        await asyncio.gather(*[run.ask(note(number)) for number in range(20)])
        return done

    assert with_run(path, visit) == list(range(20))


def test_a_run_is_followed_for_who_looks_on_and_not_for_who_takes_stock(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(path, tmp_path / "first")
    refreshed = threading.Event()
    plain = RunStore.refresh

    def refresh(store: RunStore, *given: Any, **named: Any) -> bool:
        refreshed.set()
        return plain(store, *given, **named)

    async def visit(run: OpenRun) -> list[bool]:
        await run.ask(count, is_looking=False)
        monkeypatch.setattr(RunStore, "refresh", refresh)
        generate_run(tmp_path / "other", RunShape.sized(50))
        for log in (tmp_path / "other" / "log").iterdir():
            shutil.copy(log, tmp_path / "first" / "log" / f"other-{log.name}")
        in_between = await asyncio.to_thread(refreshed.wait, 0.8)
        await run.ask(count)
        return [in_between, await asyncio.to_thread(refreshed.wait, 30)]

    assert with_run(tmp_path / "first", visit) == [False, True]


def test_a_burst_is_told_of_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracers = [Tracer(run="first", dir=str(tmp_path)) for _ in range(3)]
    pieces: list[RunProgress] = []

    def record() -> None:
        for tracer in tracers:
            with tracer.session(sample=1), tracer.phase("generate"):
                pass
            tracer.flush()

    async def visit(run: OpenRun) -> int:
        await run.ask(count)
        pieces.clear()
        record()
        found = 0
        while found < 12:
            found = await run.ask(count)
        return found

    monkeypatch.setattr("rollscope.server.opened._AT_ONCE_S", 0.0)
    record()
    assert with_run(tmp_path / "first", visit, pieces.append) == 12
    assert len([piece for piece in pieces if "spans" in piece.changed]) >= len(tracers)
    for tracer in tracers:
        tracer.shutdown()


def test_an_error_of_a_job_is_told_to_who_gave_it_and_the_next_is_done(path: Path) -> None:
    async def visit(run: OpenRun) -> int:
        with pytest.raises(StoreError):
            await run.ask(lambda store: store.query("SELECT nothing"))
        return await run.ask(count)

    assert with_run(path, visit) > 0


def test_a_run_that_cannot_be_opened_says_so_to_everybody(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreError("damaged beyond repair")

    monkeypatch.setattr("rollscope.server.opened.RunStore", fail)

    async def visit(run: OpenRun) -> list[object]:
        answers = [run.ask(count) for _ in range(2)]
        return list(await asyncio.gather(*answers, return_exceptions=True))

    assert [str(one) for one in with_run(path, visit)] == ["damaged beyond repair"] * 2


def test_who_asks_a_run_that_was_closed_is_told_to_ask_again(path: Path) -> None:
    async def visit(run: OpenRun) -> int:
        run.close()
        with pytest.raises(Failure) as caught:
            await run.ask(count)
        return caught.value.status

    assert with_run(path, visit) == 503


def test_a_fault_while_following_is_told_to_who_asks_just_then(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    async def visit(run: OpenRun) -> None:
        await run.ask(count)
        monkeypatch.setattr("rollscope.server.progress.Headway.look", fail)
        monkeypatch.setattr("rollscope.server.opened.OpenRun._is_due", lambda _: True)
        await run.ask(count, limit_s=5)

    with pytest.raises(ZeroDivisionError):
        with_run(path, visit)


def test_a_fault_while_following_is_told_and_does_not_hang_anybody(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    async def visit(run: OpenRun) -> None:
        await run.ask(count)
        monkeypatch.setattr("rollscope.server.progress.Headway.look", fail)
        while True:
            await run.ask(count)
            await asyncio.sleep(0.05)

    with pytest.raises(ZeroDivisionError):
        with_run(path, visit)


def test_who_waits_for_a_run_to_stand_still_is_told_when_it_was_closed(path: Path) -> None:
    async def visit(run: OpenRun) -> int:
        await run.ask(count)
        held, let_go = threading.Event(), threading.Event()

        def hold() -> None:
            with run.standing_still():
                held.set()
                let_go.wait(30)

        holder = asyncio.create_task(asyncio.to_thread(hold))
        await asyncio.to_thread(held.wait, 30)
        late = asyncio.create_task(current_timeline(run, "host"))
        await asyncio.sleep(0)  # it has begun to wait
        run.close()
        let_go.set()
        await holder
        with pytest.raises(Failure) as caught:
            await asyncio.wait_for(late, 30)
        return caught.value.status

    assert with_run(path, visit) == 503


def test_a_timeline_of_a_run_that_was_closed_is_refused_at_once(path: Path) -> None:
    async def visit(run: OpenRun) -> int:
        await run.ask(count)
        run.close()
        await asyncio.to_thread(run.join, 30)
        with pytest.raises(Failure) as caught:
            await asyncio.wait_for(current_timeline(run, "host"), 30)
        return caught.value.status

    assert with_run(path, visit) == 503


def test_what_is_shipped_to_a_run_that_is_over_is_taken_in_soon(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollscope.server.opened._EVERY_OVER_S", 3600.0)
    run = tmp_path / "shipped"
    first, *others = sorted((path / "log").glob("*.rsl"))
    (run / "log").mkdir(parents=True)
    shutil.copy(first, run / "log")

    told = threading.Event()

    async def visit(opened: OpenRun) -> tuple[int, int]:
        before = await opened.ask(count)
        assert opened.moment()[1] is False
        opened.watchers = 1
        told.clear()
        for log in others:
            shutil.copy(log, run / "log")
        assert await asyncio.to_thread(told.wait, 30)
        return before, await opened.ask(count)

    before, after = with_run(run, visit, lambda _: told.set())
    assert after > before
