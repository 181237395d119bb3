from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from rollscope.collect import collector as module
from rollscope.collect import receiving
from rollscope.collect.collector import MOST_WAITING_BYTES, Collector
from rollscope.collect.exchange import Exchange
from rollscope.errors import CollectorAway, CollectorBusy, FramesRefused
from rollscope.model.batch import Batch, ClockReading, Payload
from rollscope.model.batch import decode_batch as decode
from rollscope.model.frames import scan_frames
from tests.builders import (
    EPOCH,
    PROCESS,
    SECOND,
    frame_of,
    make_batch,
    make_columns,
    make_header,
    make_row,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

T = TypeVar("T")

FIRST = frame_of(make_batch(0, header=make_header(host="far", pid=1)))
LAST = frame_of(make_batch(1, end="exit"))


def during(place: Path, scenario: Callable[[Collector], Awaitable[T]], **options: Any) -> T:
    """Run a scenario with a collector, which is closed in the end."""

    async def life() -> T:
        collector = Collector(place, **options)
        try:
            return await scenario(collector)
        finally:
            await collector.close()

    return asyncio.run(life())


def batches_in(place: Path, role: str, folder: str = "log") -> list[Batch]:
    """Give what logs of a role hold, one log after the other."""
    found: list[Batch] = []
    for path in sorted((place / "run" / folder).glob("*.rsl")):
        batches = [decode(body) for body in scan_frames(path.read_bytes()).bodies]
        header = next((batch.header for batch in batches if batch.header), None)
        if header is None or header.role == role:
            found += batches
    return found


async def keep(collector: Collector, *frames: bytes, **with_them: Any) -> None:
    await collector.do(0, lambda: collector.keep("run", {}, PROCESS, b"".join(frames), **with_them))


def test_work_is_done_in_order_by_one_thread(tmp_path: Path) -> None:
    async def scenario(collector: Collector) -> list[tuple[int, str]]:
        done: list[tuple[int, str]] = []

        def work(number: int) -> None:
            done.append((number, threading.current_thread().name))

        await asyncio.gather(*(collector.do(1, lambda n=n: work(n)) for n in range(20)))  # type: ignore[misc]
        return done

    done = during(tmp_path, scenario)
    assert [number for number, _ in done] == list(range(20))
    assert {name for _, name in done} == {"rollscope-collect_0"}


def test_what_does_not_fit_is_turned_away_until_there_is_room(tmp_path: Path) -> None:
    async def scenario(collector: Collector) -> None:
        may_go = threading.Event()
        slow = asyncio.ensure_future(collector.do(MOST_WAITING_BYTES, may_go.wait))
        await asyncio.sleep(0)
        with pytest.raises(CollectorBusy, match="256 MiB wait") as busy:
            await collector.do(1, lambda: None)
        assert busy.value.retry_after_s == 1
        may_go.set()
        await slow
        assert await collector.do(1, lambda: "kept") == "kept"
        assert collector.waiting_bytes == 0

    during(tmp_path, scenario)


def test_a_reservation_that_fails_gives_back_what_it_had(tmp_path: Path) -> None:
    async def scenario(collector: Collector) -> None:
        with pytest.raises(CollectorBusy), collector.reserve(5) as room:
            room.add(MOST_WAITING_BYTES)
        assert collector.waiting_bytes == 0

    during(tmp_path, scenario)


def test_work_that_fails_fails_who_asked_for_it_only(tmp_path: Path) -> None:
    async def scenario(collector: Collector) -> None:
        with pytest.raises(FramesRefused):
            await keep(collector, b"nonsense")
        await keep(collector, FIRST)

    during(tmp_path, scenario)
    assert len(batches_in(tmp_path, "main")) == 1


def test_a_collector_that_stops_finishes_what_was_begun_and_begins_nothing(tmp_path: Path) -> None:
    async def scenario(collector: Collector) -> None:
        collector.check_open()
        collector.stop()
        with pytest.raises(CollectorAway, match="stops"):
            collector.check_open()
        await keep(collector, FIRST)
        await collector.close()
        with pytest.raises(CollectorAway, match="stops"):
            await keep(collector, LAST)

    async def life() -> None:
        await scenario(Collector(tmp_path))

    asyncio.run(life())
    assert len(batches_in(tmp_path, "main")) == 1


def test_whoever_lists_runs_is_told_of_new_ones(tmp_path: Path) -> None:
    told: list[bool] = []

    async def scenario(collector: Collector) -> None:
        await keep(collector, FIRST)
        await keep(collector, LAST)

    during(tmp_path, scenario, when_run_made=lambda: told.append(True))
    assert told == [True]


def test_a_log_is_written_for_somebody_who_records_nothing(tmp_path: Path) -> None:
    header = make_header(host="engine", pid=9, role="vllm")
    text = Payload(b"\1" * 16, 1, EPOCH, "messages", "hi", False)

    def work(collector: Collector) -> None:
        log = collector.author("run", "engine-1", header, {"from": "otlp"})
        log.write(at_ns=EPOCH, spans=make_columns(make_row(1)), payloads=[text])
        assert collector.author("run", "engine-1", header) is log
        log.release()  # files are opened again when they are needed
        log.write(at_ns=EPOCH + SECOND, heartbeat=True)
        log.write()  # nothing to say

    during(tmp_path, lambda collector: collector.do(0, lambda: work(collector)))

    first, second = batches_in(tmp_path, "vllm")
    assert (first.number, first.mono_ns, first.header) == (0, EPOCH, header)
    assert first.clock.wall_at(first.mono_ns) == EPOCH
    assert first.spans is not None
    assert (second.number, second.heartbeat is not None) == (1, True)
    (payloads,) = batches_in(tmp_path, "vllm", "payloads")
    assert (payloads.number, payloads.payloads) == (-1, [text])
    assert b'"from": "otlp"' in (tmp_path / "run" / "run.json").read_bytes()


def test_few_authored_logs_are_open_and_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_OPEN", 2)
    monkeypatch.setattr(module, "_MOST_AUTHORED", 5)

    async def scenario(collector: Collector) -> int:
        def work() -> int:
            for number in range(10):
                log = collector.author("run", str(number), make_header(role="engine"))
                log.write(heartbeat=True)
            return len({collector.author("run", str(n), make_header()).process for n in (8, 9)})

        return await collector.do(0, work)

    assert during(tmp_path, scenario) == 2
    assert len(batches_in(tmp_path, "engine")) == 10


def test_the_receiver_says_what_it_took_in_and_ends_with_the_senders(tmp_path: Path) -> None:
    async def scenario(collector: Collector) -> None:
        await keep(collector, FIRST, FIRST)
        with pytest.raises(FramesRefused):
            await keep(collector, b"nonsense")
        await keep(collector, LAST)
        tending = asyncio.ensure_future(collector.tend())
        async with asyncio.timeout(20):
            while not batches_in(tmp_path, "receiver"):  # noqa: ASYNC110  (only files can tell)
                await asyncio.sleep(0.05)
        tending.cancel()

    during(tmp_path, scenario)
    (said,) = batches_in(tmp_path, "receiver")
    assert {metric.name: metric.value for metric in said.metrics} == {
        "rollscope.ingest.frames": 3,
        "rollscope.ingest.bytes": 2 * len(FIRST) + len(LAST),
        "rollscope.ingest.doubled": 1,
        "rollscope.ingest.refused": 1,
        "rollscope.ingest.waiting_bytes": 0,
    }
    assert said.end == "exit"


def test_the_best_clock_reading_of_each_process_is_written(tmp_path: Path) -> None:
    def exchange(back_ns: int) -> Exchange:
        return Exchange(back_ns + 1, 100, EPOCH + 150, EPOCH + 150, back_ns)

    async def scenario(collector: Collector) -> None:
        await keep(collector, FIRST, exchange=Exchange(1), received_ns=EPOCH + 3)
        for back_ns in (300, 500, 900):
            await keep(collector, exchange=exchange(back_ns), received_ns=EPOCH + 9)

    during(tmp_path, scenario)
    (said,) = batches_in(tmp_path, "receiver")
    assert said.readings == [ClockReading(PROCESS, 200, -50, 100)]


def test_an_exchange_that_is_told_again_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiving, "EVERY_S", 0.0)
    exchange = Exchange(301, 100, EPOCH + 150, EPOCH + 150, 300)

    async def scenario(collector: Collector) -> None:
        await keep(collector, FIRST, exchange=exchange, received_ns=EPOCH + 3)
        tending = asyncio.ensure_future(collector.tend())
        async with asyncio.timeout(20):
            while not batches_in(tmp_path, "receiver"):  # noqa: ASYNC110  (only files can tell)
                await asyncio.sleep(0.05)
        tending.cancel()
        await keep(collector, exchange=exchange, received_ns=EPOCH + 4)

    during(tmp_path, scenario)
    first, *others = batches_in(tmp_path, "receiver")
    assert len(first.readings) == 1
    assert [batch.readings for batch in others] == [[]]


def test_a_bound_is_written_only_if_nothing_better_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiving, "EVERY_S", 0.0)

    async def scenario(collector: Collector) -> None:
        await keep(collector, FIRST, exchange=Exchange(1), received_ns=EPOCH + 3)

    during(tmp_path, scenario)
    (said,) = batches_in(tmp_path, "receiver")
    assert said.readings == [ClockReading(PROCESS, 1, 2, -1)]
