"""All runs of a directory sent on by a real forwarder, through absences and kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from rollscope.cli.main import main
from rollscope.instrument.tracer import Tracer
from rollscope.otlp.export.exporter import Wanted
from rollscope.otlp.export.forwarding import Forwarder
from rollscope.otlp.export.forwardstate import ForwardState
from rollscope.otlp.export.httptarget import HttpTarget
from rollscope.otlp.export.sending import Delivered, Sending
from rollscope.otlp.export.settings import read_settings
from rollscope.store.embedded import RunStore
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from tests.integration.test_otlp_export import check_spans, ended_rows, record
from tests.monitoring.prometheus import free_port, wait_until
from tests.otlp_sink import Reply, http_sink

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rollscope.otlp.answering import Signal
    from tests.otlp_sink import Sink


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")


class Forwarding:
    """A forwarder's process, and what it says."""

    def __init__(self, runs: Path, address: str, said: Path) -> None:
        self.said = said
        command = [sys.executable, "-m", "rollscope", "export", "--every-run", "--follow"]
        command += ["--dir", str(runs), "--endpoint", address, "--batch", "20"]
        command += ["--state-dir", str(runs.parent / "state")]
        with said.open("ab") as file:
            self.process = subprocess.Popen(command, stderr=file, stdout=file)

    def wait_for_words(self, words: str) -> None:
        wait_until(lambda: words in self.said.read_text(), what=words)

    def end(self, number: int, code: int) -> None:
        self.process.send_signal(number)
        assert self.process.wait(30) == code


@contextmanager
def forwarding(runs: Path, address: str) -> Iterator[Forwarding]:
    forwarder = Forwarding(runs, address, runs.parent / "said")
    try:
        yield forwarder
    finally:
        if forwarder.process.poll() is None:
            forwarder.process.kill()
            forwarder.process.wait()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def recorded(runs: Path, name: str, tasks: int) -> Tracer:
    tracer = Tracer(run=name, dir=str(runs))
    record(tracer, tasks)
    return tracer


def all_rows(runs: Path, *names: str) -> dict[int, dict[str, object]]:
    return {key: row for name in names for key, row in ended_rows(runs / name).items()}


def count_of(sink: Sink) -> int:
    return len({span.span_id for span in sink.spans})


def test_every_run_arrives_though_the_endpoint_was_away_and_the_forwarder_killed(
    runs: Path,
) -> None:
    recorded(runs, "finished", 30).shutdown()
    live = [recorded(runs, "live-1", 20), recorded(runs, "live-2", 20)]
    port = free_port()
    with forwarding(runs, f"http://127.0.0.1:{port}") as first:
        first.wait_for_words("trying again")
        first.end(signal.SIGKILL, -signal.SIGKILL)
    with http_sink(port=port) as sink:
        with forwarding(runs, sink.address) as second:
            wait_until(lambda: count_of(sink) == 210)
            second.wait_for_words("run finished has ended, and all of it was sent")
            record(live[0], 20, 20)
            late = recorded(runs, "late", 10)
            wait_until(lambda: count_of(sink) == 300)
            second.end(signal.SIGKILL, -signal.SIGKILL)
        record(live[1], 20, 20)
        live[0].shutdown()
        with forwarding(runs, sink.address) as third:
            third.wait_for_words("run live-1 has ended")
            live[1].shutdown()
            late.shutdown()
            third.wait_for_words("run live-2 has ended")
            third.wait_for_words("run late has ended")
            third.end(signal.SIGTERM, 0)
        came = Counter(span.span_id for span in sink.spans)
        again = sum(came.values()) - len(came)
        assert again <= 20, "more came again than the request that was under way"
        unique = {span.span_id: span for span in sink.spans}
        check_spans(list(unique.values()), all_rows(runs, "finished", "live-1", "live-2", "late"))
        assert first.said.read_text().count("run finished has ended") == 1


def test_a_run_that_ended_is_not_even_opened_until_somebody_writes_to_it_again(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []

    def opening(run: Path, *, threads: int | None) -> RunStore:
        opened.append(run)
        return RunStore(run, threads=threads)

    monkeypatch.setattr("rollscope.otlp.export.forwarding.RunStore", opening)
    recorded(runs, "one", 5).shutdown()
    command = ["export", "--every-run", "--dir", str(runs), "--state-dir", str(runs.parent / "s")]
    with http_sink() as sink:
        for _ in range(2):
            assert main([*command, "--endpoint", sink.address]) == 0
        assert (len(sink.spans), len(opened)) == (15, 1)
        recorded(runs, "one", 2).shutdown()
        assert main([*command, "--endpoint", sink.address]) == 0
        check_spans(sink.spans, ended_rows(runs / "one"))
        assert len(sink.spans) == 21


def test_more_runs_than_may_be_open_are_all_followed(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_open: set[RunStore] = set()
    most = 0

    class Counted(RunStore):
        def __init__(self, run: Path, *, threads: int | None) -> None:
            nonlocal most
            super().__init__(run, threads=threads)
            now_open.add(self)
            most = max(most, len(now_open))

        def close(self) -> None:
            super().close()
            now_open.discard(self)

    monkeypatch.setattr("rollscope.otlp.export.forwarding.RunStore", Counted)
    tracers = [recorded(runs, f"run-{number}", 3) for number in range(5)]
    stop, told = threading.Event(), list[str]()
    state = ForwardState(tmp_path / "state")
    with http_sink() as sink:
        settings = read_settings({}, endpoint=sink.address)
        settings = msgspec.structs.replace(settings, every_s=0.02)
        target = HttpTarget(settings)
        forwarder = Forwarder(
            runs,
            state,
            Sending(target, None, sleep=stop.wait),
            settings,
            Wanted(),
            stop=stop,
            tell=told.append,
            most_open=2,
            again_s=0.05,
        )
        thread = threading.Thread(target=forwarder.follow)
        thread.start()
        try:
            wait_until(lambda: count_of(sink) == 45)
            for number, tracer in enumerate(tracers):
                record(tracer, 1, 3 + number)
            wait_until(lambda: count_of(sink) == 60)
            for tracer in tracers:
                tracer.shutdown()
            wait_until(lambda: len(told) == 5)
        finally:
            stop.set()
            thread.join()
            target.close()
            state.close()
        check_spans(sink.spans, all_rows(runs, *(f"run-{number}" for number in range(5))))
    assert (most, len(now_open)) == (2, 0)
    assert forwarder.exported.spans == 60


def test_a_long_run_of_before_does_not_hold_up_one_that_goes_on(runs: Path, tmp_path: Path) -> None:
    generate_run(runs / "long", RunShape.sized(20_000))
    os.utime(runs / "long", (1, 1))  # the newest run is taken first
    live = recorded(runs, "live", 1)
    stop, order = threading.Event(), list[str]()

    class Target:
        def send(self, signal: Signal, body: bytes) -> Delivered:
            (part,) = {
                pair.value.string_value
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans
                for pair in resource.resource.attributes
                if pair.key == "rollscope.run"
            }
            order.append(part)
            if order.count("long") == 1 and part == "long":
                record(live, 1, 1)
            return Delivered()

        def close(self) -> None:
            """Hold nothing."""

    state = ForwardState(tmp_path / "state")
    settings = msgspec.structs.replace(read_settings({}, batch_spans=500), every_s=0.01)
    sending = Sending(Target(), None, sleep=stop.wait)

    def tell(what: str) -> None:
        assert "is not sent" not in what
        stop.set()

    Forwarder(runs, state, sending, settings, Wanted(), stop=stop, tell=tell).follow()
    state.close()
    live.shutdown()
    assert order[0] == "live"
    assert "live" in order[order.index("long") : -1]
    assert order[-1] == "long"


def test_a_run_that_is_refused_or_damaged_does_not_keep_the_others(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b", "c"):
        recorded(runs, name, 2).shutdown()
    state = runs.parent / "state"
    command = ["export", "--every-run", "--dir", str(runs), "--state-dir", str(state)]
    with http_sink() as sink:
        sink.replies = [Reply(400, {}, b"no thanks")]
        assert main([*command, "--endpoint", sink.address]) == 1
        assert "no thanks" in capsys.readouterr().err
        assert len(sink.spans) == 12
        assert main([*command, "--endpoint", sink.address]) == 0
        check_spans(sink.spans, all_rows(runs, "a", "b", "c"))


def test_a_second_forwarder_with_the_same_state_is_refused(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.mkdir()
    with http_sink() as sink, forwarding(runs, sink.address) as forwarder:
        forwarder.wait_for_words("sending the runs")
        command = ["export", "--every-run", "--dir", str(runs), "--endpoint", sink.address]
        assert main([*command, "--state-dir", str(runs.parent / "state")]) == 1
        assert "another export" in capsys.readouterr().err
        forwarder.end(signal.SIGTERM, 0)


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["--every-run"], "--state-dir DIR"),
        (["--every-run", "--state-dir", "x", "some-run"], "the name of a run"),
        (["--every-run", "--state-dir", "x", "-o", "out"], "-o FILE"),
        (["--every-run", "--state-dir", "x", "--state", "f"], "--state FILE"),
        (["--every-run", "--state-dir", "x", "--scope", "3"], "--scope"),
        (["--state-dir", "x"], "--every-run"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    arguments: list[str], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", *arguments]) == 2
    assert advice in capsys.readouterr().err
