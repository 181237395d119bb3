"""The code of the hub, without Ray around it."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

from rollscope.instrument.sinks.spool import Spool
from rollscope.instrument.sinks.spooldir import Destination
from rollscope.rayhub.hub import Hub, HubAnswer, hub_address
from tests.builders import frame_of, make_batch, make_header

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

PROCESS = make_batch().process
FIRST = frame_of(make_batch(0, header=make_header()))
SECOND = frame_of(make_batch(1))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def talk(tmp_path: Path, to: Callable[[Hub], Coroutine[Any, Any, list[HubAnswer]]]) -> Any:
    async def conversation() -> list[HubAnswer]:
        hub = Hub(str(tmp_path / "runs"))
        try:
            return await asyncio.wait_for(to(hub), 30)
        finally:
            for task in hub._tasks:
                task.cancel()
            await hub._collector.close()

    return asyncio.run(conversation())


def test_frames_are_kept_once_and_counted(tmp_path: Path) -> None:
    async def send(hub: Hub) -> list[HubAnswer]:
        return [await hub.keep("run", {}, PROCESS, data) for data in (FIRST, FIRST + SECOND)]

    first, again = talk(tmp_path, send)
    assert (first.refusal, first.frames, first.doubled) == ("", 1, 0)
    assert (again.frames, again.doubled) == (2, 1)
    assert 0 < first.received_ns <= first.sent_ns <= again.received_ns
    kept = [path.read_bytes() for path in (tmp_path / "runs" / "run" / "log").iterdir()]
    assert FIRST + SECOND in kept


def test_what_can_never_be_kept_is_refused_with_a_sentence(tmp_path: Path) -> None:
    async def send(hub: Hub) -> list[HubAnswer]:
        return [
            await hub.keep("run", {}, PROCESS, b"no frame"),
            await hub.keep("../run", {}, PROCESS, FIRST),
        ]

    for answer in talk(tmp_path, send):
        assert answer.refusal
        assert answer.retry_after_s is None
    assert not (tmp_path / "runs").exists()


def test_what_the_dead_left_on_its_host_is_taken_over(tmp_path: Path) -> None:
    other = b"\7" * 8
    directory, spools = tmp_path / "runs", tmp_path / "spools"
    to = Destination(
        address=hub_address(str(directory)), run="run", process=other.hex(),
        host=os.uname().nodename, pid=1, tags={},
    )  # fmt: skip
    spool = Spool.make(str(spools / other.hex()), to)
    spool.write(frame_of(make_batch(0, header=make_header(pid=77), process=other)))
    spool.let_go()

    async def send(hub: Hub) -> list[HubAnswer]:
        answer = await hub.keep("run", {}, PROCESS, FIRST, home=str(spools))
        while list(spools.iterdir()):  # noqa: ASYNC110  (told by nobody)
            await asyncio.sleep(0.01)
        return [answer]

    talk(tmp_path, send)
    assert len(list((directory / "run" / "log").glob("*-77-*"))) == 1


def test_a_hub_with_too_much_to_do_asks_to_come_back(tmp_path: Path) -> None:
    async def send(hub: Hub) -> list[HubAnswer]:
        with hub._collector.reserve(64 * 1024 * 1024):
            busy = await hub.keep("run", {}, PROCESS, FIRST)
        return [busy, await hub.keep("run", {}, PROCESS, FIRST)]

    busy, kept = talk(tmp_path, send)
    assert "wait to be kept" in busy.refusal
    assert busy.retry_after_s == 1.0
    assert kept.frames == 1
