from __future__ import annotations

import logging
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from rollscope.instrument.sinks import Frame, Opening, PatientSink, Sink, shipping
from rollscope.instrument.sinks.collector import Busy, CollectorSink, Delivery, Refused
from rollscope.instrument.sinks.spool import Spool
from rollscope.instrument.sinks.spooldir import Destination
from rollscope.model.frames import pack_frame
from tests.builders import make_header
from tests.integration.support import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OWN = bytes(range(8))
DEAD = bytes(range(8, 16))


class TableSink(CollectorSink):
    """Puts deliveries on a table, unless it is told to fail."""

    def __init__(self, home: Path) -> None:
        super().__init__("table", spool_dir=str(home))
        self.table: list[Delivery] = []
        self.connections = 0
        self.failures: list[BaseException] = []
        self.busy_run: str | None = None
        self.gate = threading.Event()
        self.gate.set()

    def connect(self) -> None:
        self.connections += 1

    def deliver(self, delivery: Delivery) -> None:
        self.gate.wait(30)
        if self.failures:
            raise self.failures.pop(0)
        if delivery.run == self.busy_run:
            raise Busy(30, "another run is shown there")
        self.table.append(delivery)

    def disconnect(self) -> None:
        self.gate.set()

    def bytes_of(self, process: bytes) -> bytes:
        return b"".join(item.data for item in list(self.table) if item.process == process)


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[TableSink]:
    sink = TableSink(tmp_path)
    yield sink
    sink.close()


def opening(process: bytes = OWN) -> Opening:
    header = make_header(host=os.uname().nodename, pid=os.getpid())
    return Opening("run", "unused", process, header, {"lr": "1e-5"})


def frame(number: int) -> Frame:
    return Frame(pack_frame(b"%06d" % number), is_payload=number % 2 == 1)


def leave_spool(home: Path, run: str = "old-run") -> bytes:
    to = Destination("table", run, DEAD.hex(), os.uname().nodename, 1)
    spool = Spool.make(str(home / DEAD.hex()), to)
    data = b"".join(frame(number).data for number in range(5))
    spool.write(data)
    spool.release()
    return data


def test_it_is_a_sink_that_may_take_its_time(sink: TableSink) -> None:
    assert isinstance(sink, Sink)
    assert isinstance(sink, PatientSink)


def test_frames_are_gathered_and_delivered_in_order(sink: TableSink, tmp_path: Path) -> None:
    sink.open(opening())
    frames = [frame(number) for number in range(50)]
    for item in frames:
        sink.write(item)
    sink.close()
    assert sink.bytes_of(OWN) == b"".join(item.data for item in frames)
    assert len(sink.table) < 10
    assert {(item.run, item.process) for item in sink.table} == {("run", OWN)}
    assert sink.table[0].tags == {"lr": "1e-5"}
    assert list(tmp_path.iterdir()) == []


def test_frames_that_wait_for_others_go_at_once_when_there_is_a_hurry(
    sink: TableSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TableSink, "gather_s", 3600.0)
    sink.open(opening())
    sink.write(frame(0))

    def is_delivered() -> bool:
        assert sink._now is not None
        sink._now.shipper.hurry()
        return bool(sink.table)

    eventually(is_delivered, "it is delivered")


def test_any_failure_is_tried_again_over_a_new_connection(sink: TableSink) -> None:
    sink.failures = [OSError("gone"), ValueError("odd"), SystemExit(1), Busy(0.01)]
    sink.open(opening())
    sink.write(frame(0))
    eventually(lambda: sink.table, "it is delivered")
    assert sink.connections == 4


@pytest.mark.parametrize("kind", [ValueError, Refused])
def test_what_the_other_side_says_is_told_as_one_short_line(
    sink: TableSink,
    kind: type[Exception],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rollscope.instrument.sinks.shipping._AWAY_S", 0.0)
    sink.failures = [kind("no \x1b[2J\r\nway\x00 " + "x" * 60_000)]
    sink.open(opening())
    sink.write(frame(0))
    eventually(lambda: caplog.messages, "it is told")
    (message,) = caplog.messages
    assert "no [2J way xxx" in message
    assert message.isprintable()
    assert len(message) < 1000


@pytest.mark.parametrize(("goes_on_for_s", "is_told"), [(0.0, True), (60.0, False)])
def test_a_collector_that_keeps_us_waiting_is_told_of_once_it_goes_on(
    sink: TableSink,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    goes_on_for_s: float,
    is_told: bool,
) -> None:
    monkeypatch.setattr("rollscope.instrument.sinks.shipping._DENIED_S", goes_on_for_s)
    sink.failures = [
        Busy(0.01, f"there is no room, {number} MiB wait", may_pass=True) for number in range(3)
    ]
    sink.open(opening())
    sink.write(frame(0))
    eventually(lambda: sink.table, "it is delivered")
    assert len([text for text in caplog.messages if "there is no room" in text]) == is_told


def test_what_a_dead_process_left_is_delivered_too(sink: TableSink, tmp_path: Path) -> None:
    left = leave_spool(tmp_path)
    sink.open(opening())
    sink.write(frame(0))
    eventually(lambda: sink.bytes_of(DEAD) == left, "it is delivered")
    eventually(lambda: not (tmp_path / DEAD.hex()).exists(), "it is cleared away")
    sink.close()
    assert {item.run for item in sink.table} == {"run", "old-run"}


def test_what_was_left_for_another_address_is_not(sink: TableSink, tmp_path: Path) -> None:
    leave_spool(tmp_path)
    other = TableSink(tmp_path)
    other.address = "another table"
    other.open(opening())
    other.write(frame(0))
    eventually(lambda: other.table, "its own is delivered")
    other.close()
    assert other.bytes_of(DEAD) == b""
    assert (tmp_path / DEAD.hex()).exists()


def test_a_dead_process_whose_run_is_not_taken_holds_nobody_up(
    sink: TableSink, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    leave_spool(tmp_path)
    sink.busy_run = "old-run"
    sink.open(opening())
    eventually(lambda: caplog.messages, "it is told")
    for number in range(3):
        sink.write(frame(number))
        eventually(lambda: frame(number).data in sink.bytes_of(OWN), "ours is delivered")  # noqa: B023
    sink.close()
    assert len(caplog.messages) == 1
    assert (tmp_path / DEAD.hex()).exists()


def test_closing_waits_no_longer_than_the_program_does(
    sink: TableSink, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink.gate.clear()
    sink.open(opening())
    sink.write(frame(0))
    sink.close_by(time.monotonic() + 0.5)
    began = time.monotonic()
    with caplog.at_level(logging.WARNING):
        sink.close()
    assert time.monotonic() - began < 3
    (told,) = caplog.messages
    assert str(tmp_path / OWN.hex()) in told
    assert "or by `rollscope ship`" in told


def test_a_program_that_ends_before_the_sink_is_open_waits_no_longer_either(
    sink: TableSink,
) -> None:
    sink.gate.clear()
    sink.close_by(time.monotonic() + 0.5)
    sink.open(opening())
    sink.write(frame(0))
    began = time.monotonic()
    sink.close()
    assert time.monotonic() - began < 2


def test_it_can_be_opened_again(sink: TableSink) -> None:
    sink.open(opening())
    sink.write(frame(0))
    sink.open(opening(DEAD))
    sink.write(frame(1))
    sink.close()
    assert (sink.bytes_of(OWN), sink.bytes_of(DEAD)) == (frame(0).data, frame(1).data)


def test_it_has_to_be_open(sink: TableSink) -> None:
    with pytest.raises(RuntimeError, match="has to be opened"):
        sink.write(frame(0))


def test_where_no_thread_can_be_had_closing_delivers(
    sink: TableSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    with monkeypatch.context() as patch:
        patch.setattr(shipping.threading.Thread, "start", cannot)  # type: ignore[attr-defined]
        sink.open(opening())
    sink.write(frame(0))
    sink.close()
    assert sink.bytes_of(OWN) == frame(0).data
