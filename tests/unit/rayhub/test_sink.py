"""The Ray sink while Ray is not there, answers with trouble, or is gone for good."""

from __future__ import annotations

import logging
import os
import threading
import time
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import ray

from rollscope.instrument.sinks import Frame, Opening
from rollscope.instrument.sinks.collector import Busy, Delivery, Refused
from rollscope.instrument.sinks.spooldir import Destination, make_spool
from rollscope.rayhub import access
from rollscope.rayhub import sink as sink_module
from rollscope.rayhub.access import RayAway, using_ray
from rollscope.rayhub.hub import HubAnswer
from rollscope.rayhub.sink import RaySink
from tests.builders import frame_of, make_batch, make_header
from tests.integration.support import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROCESS = make_batch().process
DELIVERY = Delivery("run", {}, PROCESS, b"frames")


class Hub:
    """Answers as it is told; or not."""

    def __init__(self, answer: HubAnswer | Exception | None) -> None:
        self.answer = answer
        self.calls: list[tuple[Any, ...]] = []
        self.called = threading.Event()
        self.keep = self

    def remote(self, *args: Any) -> Hub:
        self.calls.append(args)
        self.called.set()
        return self

    def future(self) -> Future[HubAnswer]:
        coming: Future[HubAnswer] = Future()
        if isinstance(self.answer, Exception):
            coming.set_exception(self.answer)
        elif self.answer is not None:
            coming.set_result(self.answer)
        return coming


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Ray seem to be there."""

    @contextmanager
    def using() -> Iterator[None]:
        yield None

    monkeypatch.setattr(sink_module, "using_ray", using)


def sink_to(hub: Hub, tmp_path: Path) -> RaySink:
    sink = RaySink(spool_dir=str(tmp_path))
    sink._hub = hub
    return sink


def opening_of(tmp_path: Path) -> Opening:
    header = make_header(pid=os.getpid(), host=os.uname().nodename)
    return Opening("run", str(tmp_path / "runs"), PROCESS, header, {})


def write_frame(sink: RaySink, number: int) -> None:
    header = make_header() if number == 0 else None
    sink.write(Frame(frame_of(make_batch(number, header=header))))


def test_frames_wait_in_the_spool_while_ray_is_not_initialised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sink_module, "_RAY_COMES_S", 0.0)
    sink = RaySink(spool_dir=str(tmp_path / "spool"))
    with caplog.at_level(logging.WARNING):
        sink.open(opening_of(tmp_path))
        write_frame(sink, 0)
        eventually(lambda: caplog.text, "somebody is told")
        sink.close()
    assert sink.address == f"ray:{tmp_path / 'runs'}"
    assert "Ray is not initialised in this process; call ray.init()" in caplog.text
    assert "wait in" in caplog.text
    assert not ray.is_initialized()
    assert not (tmp_path / "runs").exists()
    assert len(list((tmp_path / "spool").iterdir())) == 1


def test_nobody_is_told_that_ray_is_still_to_come(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink = RaySink(spool_dir=str(tmp_path))
    with caplog.at_level(logging.WARNING), pytest.raises(Busy) as busy:
        sink.connect()
    assert busy.value.why == ""
    assert caplog.text == ""


def test_a_forked_child_leaves_rays_machinery_to_its_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(access, "_is_forked", True)
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    with pytest.raises(RayAway, match="forked"), using_ray():
        pass


@pytest.mark.usefixtures("connected")
def test_frames_and_clocks_go_to_the_hub(tmp_path: Path) -> None:
    hub = Hub(HubAnswer(received_ns=5, sent_ns=6, frames=1))
    sink = sink_to(hub, tmp_path)
    sink.process = PROCESS
    sink.deliver(DELIVERY)
    sink.deliver(DELIVERY)
    assert [call[3] for call in hub.calls] == [b"", b"frames", b"frames"]
    tiny, large, again = (call[4] for call in hub.calls)
    assert len(tiny) == 1
    assert large[1:] == again[1:]
    sent_ns, received_ns, answered_ns, back_ns = large[1:]
    assert (received_ns, answered_ns) == (5, 6)
    assert tiny[0] >= sent_ns
    assert sent_ns < back_ns <= large[0] < again[0]
    assert {call[5] for call in hub.calls} == {str(tmp_path)}


@pytest.mark.usefixtures("connected")
def test_the_clock_of_another_process_is_not_spoken_for(tmp_path: Path) -> None:
    hub = Hub(HubAnswer())
    sink_to(hub, tmp_path).deliver(DELIVERY)
    assert [call[3:5] for call in hub.calls] == [(b"frames", ())]


@pytest.mark.usefixtures("connected")
def test_what_the_hub_says_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no frames"):
        sink_to(Hub(HubAnswer("no frames")), tmp_path).deliver(DELIVERY)
    with pytest.raises(Busy) as busy:
        sink_to(Hub(HubAnswer("later", retry_after_s=2.5)), tmp_path).deliver(DELIVERY)
    assert busy.value.retry_after_s == 2.5
    died = ray.exceptions.RayActorError()
    with pytest.raises(ray.exceptions.RayActorError):
        sink_to(Hub(died), tmp_path).deliver(DELIVERY)


@pytest.mark.usefixtures("connected")
def test_a_hub_that_hangs_is_not_waited_for_once_the_sink_lets_go(tmp_path: Path) -> None:
    hub = Hub(None)
    sink = sink_to(hub, tmp_path)
    caught: list[Exception] = []

    def deliver() -> None:
        try:
            sink.deliver(DELIVERY)
        except RayAway as error:
            caught.append(error)

    thread = threading.Thread(target=deliver)
    thread.start()
    assert hub.called.wait(10)
    sink.disconnect()
    thread.join(10)
    assert [str(error) for error in caught] == ["told to stop"]


def test_frames_are_kept_without_a_hub_once_the_own_cluster_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_module, "_hubless", {str(tmp_path / "runs")})
    sink = RaySink(spool_dir=str(tmp_path / "spool"))
    sink.open(opening_of(tmp_path))
    for number in range(3):
        write_frame(sink, number)
    sink.close()
    (log,) = (tmp_path / "runs" / "run" / "log").iterdir()
    assert log.read_bytes() == b"".join(
        frame_of(make_batch(n, header=make_header() if n == 0 else None)) for n in range(3)
    )
    assert list((tmp_path / "spool").iterdir()) == []


@pytest.mark.parametrize(
    ("is_driver", "pid", "waits"),
    [(True, 7, True), (False, 7, False), (True, os.getpid(), False)],
    ids=["driver-of-workers", "worker", "driver-alone"],
)
def test_before_ray_ends_a_driver_lets_its_workers_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_driver: bool, pid: int, waits: bool
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(sink_module, "is_driver", lambda: is_driver)
    monkeypatch.setattr(time, "sleep", waited.append)
    host = os.uname().nodename
    to = Destination(address="ray:/runs", run="run", process="ab", host=host, pid=pid)
    make_spool(str(tmp_path / "ab"), to).close()
    sink_module._let_workers_write("ray:/elsewhere", str(tmp_path))
    assert waited == []
    sink_module._let_workers_write("ray:/runs", str(tmp_path))
    assert [wait_s > 0.2 for wait_s in waited] == [True] * waits
