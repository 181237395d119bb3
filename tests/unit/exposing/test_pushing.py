from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from rollscope.exposing.pushing import Outlet, Pushed, Pusher
from rollscope.otlp.export.sending import Again, Delivered, ExportFailed
from tests.monitoring.looks import look_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rollscope.metrics.families import Exposed
    from rollscope.otlp.answering import Signal


class Numbered:
    """Writes the time of each look as its one request."""

    def encode(self, exposed: Sequence[Exposed], at_ns: int) -> list[bytes]:
        return [b"%d" % at_ns] if exposed else []

    def encode_ending(self, at_ns: int) -> list[bytes]:
        return [b"end"] if at_ns else []


class Receiver:
    """Takes requests while it is open; may be told to fail."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.failing: list[Exception | Delivered] = []
        self.open = threading.Event()
        self.open.set()
        self.asked = threading.Event()
        self.came = threading.Condition()
        self.is_closed = False

    def send(self, signal: Signal, body: bytes) -> Delivered:
        del signal
        self.asked.set()
        assert self.open.wait(30)
        with self.came:
            said = self.failing.pop(0) if self.failing else Delivered()
            if isinstance(said, Exception):
                raise said
            self.taken.append(body)
            self.came.notify_all()
        return said

    def wait_for(self, *bodies: bytes) -> None:
        with self.came:
            assert self.came.wait_for(lambda: self.taken == list(bodies), 30), self.taken

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.open.set()


def outlet_to(receiver: Receiver, told: list[str], most_bytes: int = 1_000) -> Outlet:
    outlet = Outlet("there", Numbered(), receiver, most_bytes=most_bytes, tell=told.append)
    outlet.start()
    return outlet


def test_requests_arrive_in_order_and_the_end_is_told(receiver: Receiver, told: list[str]) -> None:
    outlet = outlet_to(receiver, told)
    for number in range(1, 4):
        outlet.offer(look_at("a"), number)
    receiver.wait_for(b"1", b"2", b"3")
    outlet.close()
    receiver.wait_for(b"1", b"2", b"3", b"end")
    assert receiver.is_closed
    assert (outlet.failures, told) == (0, [])


def test_a_receiver_that_is_away_loses_the_oldest_and_holds_up_nobody(
    receiver: Receiver, told: list[str]
) -> None:
    outlet = outlet_to(receiver, told, most_bytes=6)
    receiver.open.clear()
    outlet.offer(look_at("a"), 10)
    assert receiver.asked.wait(30)
    for number in range(11, 20):
        outlet.offer(look_at("a"), number)
    assert outlet.failures == 6
    receiver.open.set()
    receiver.wait_for(b"10", b"17", b"18", b"19")
    outlet.close()


def test_what_may_come_later_is_tried_again_and_what_is_refused_is_left_out(
    receiver: Receiver, told: list[str]
) -> None:
    receiver.failing = [Again("away", 0.0), Again("away", 0.0), ExportFailed("refused")]
    outlet = outlet_to(receiver, told)
    outlet.offer(look_at("a"), 1)
    outlet.offer(look_at("a"), 2)
    receiver.wait_for(b"2")
    assert outlet.failures == 3
    assert told == ["away; trying again", "refused; these metrics are left out"]
    outlet.close()


def test_what_is_left_out_of_a_request_that_was_taken_is_told_and_counted(
    receiver: Receiver, told: list[str]
) -> None:
    receiver.failing = [Delivered(3, "too old")]
    outlet = outlet_to(receiver, told)
    outlet.offer(look_at("a"), 1)
    outlet.offer(look_at("a"), 2)
    receiver.wait_for(b"1", b"2")
    outlet.close()
    assert outlet.failures == 1
    assert told == ["3 points were left out by there: too old"]


def test_a_fault_of_ours_ends_one_request_only(receiver: Receiver, told: list[str]) -> None:
    receiver.failing = [KeyError("slip")]
    outlet = outlet_to(receiver, told)
    outlet.offer(look_at("a"), 1)
    outlet.offer(look_at("a"), 2)
    receiver.wait_for(b"2")
    assert outlet.failures == 1
    assert told == ["metrics could not be sent to there: KeyError('slip')"]
    outlet.close()


def test_a_receiver_that_is_away_does_not_keep_the_server(
    receiver: Receiver, told: list[str]
) -> None:
    receiver.failing = [Again("away", 600.0)]
    outlet = outlet_to(receiver, told)
    outlet.offer(look_at("a"), 1)
    assert receiver.asked.wait(30)
    outlet.close()
    assert receiver.is_closed
    assert receiver.taken == []


def test_every_look_goes_to_every_receiver_and_a_failed_look_is_followed_by_the_next(
    caplog: pytest.LogCaptureFixture, told: list[str]
) -> None:
    receivers = [Receiver(), Receiver()]
    looks = 0

    async def look() -> list[Exposed]:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise OSError("not now")
        return look_at("a")

    async def scenario() -> None:
        outlets = [
            Outlet(name, Numbered(), receiver, tell=told.append)
            for name, receiver in zip(("one", "two"), receivers, strict=True)
        ]
        failures = Counter({"elsewhere": 1})
        receivers[1].failing = [Again("away", 0.0), ExportFailed("refused")]
        pusher = Pusher(look, Pushed(outlets, 0.01), failures)
        assert failures == {"elsewhere": 1, "one": 0, "two": 0}
        task = asyncio.create_task(pusher.run())
        for receiver in receivers:
            await asyncio.to_thread(_wait_for_two, receiver)
        task.cancel()
        await pusher.close()
        assert failures == {"elsewhere": 1, "one": 0, "two": 2}

    asyncio.run(scenario())
    assert all(receiver.taken[-1] == b"end" for receiver in receivers)
    assert "could not be made ready" in caplog.text
    assert told == ["away; trying again", "refused; these metrics are left out"]


def _wait_for_two(receiver: Receiver) -> None:
    with receiver.came:
        assert receiver.came.wait_for(lambda: len(receiver.taken) >= 2, 30)
