from __future__ import annotations

import os
import socket
from argparse import ArgumentParser
from typing import TYPE_CHECKING

import msgspec
import pytest

from rollscope.cli.pushing import add_push_arguments, push_settings
from rollscope.errors import CommandError
from rollscope.model.rundir import RunFile
from tests.monitoring.looks import DURATIONS, look_at
from tests.monitoring.writerequest import samples_of
from tests.otlp_sink import http_sink

if TYPE_CHECKING:
    from pathlib import Path

    from rollscope.exposing.pushing import Pushed

OTLP = ("--otlp-metrics", "http://127.0.0.1:1")
WRITE = ("--remote-write", "http://127.0.0.1:1/api/v1/write")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


def pushed(place: Path, *arguments: str) -> Pushed | None:
    parser = ArgumentParser()
    add_push_arguments(parser)
    return push_settings(parser.parse_args(arguments), place, 7077, is_single=False)


def test_nothing_is_sent_unless_asked_for(tmp_path: Path) -> None:
    assert pushed(tmp_path) is None


@pytest.mark.parametrize(
    ("arguments", "interval", "every_s"),
    [
        (WRITE, "", 15.0),
        (OTLP, "", 15.0),
        (OTLP, "60000", 60.0),
        ((*OTLP, "--push-every", "2"), "60000", 2.0),
        ((*OTLP, *WRITE), "60000", 15.0),
    ],
)
def test_an_argument_comes_before_the_variable_which_is_of_otlp_only(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    interval: str,
    every_s: float,
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", interval)
    found = pushed(tmp_path, *arguments)
    assert found is not None
    assert found.every_s == every_s


def test_an_interval_that_is_none_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "soon")
    with pytest.raises(CommandError, match="OTEL_METRIC_EXPORT_INTERVAL is 'soon'"):
        pushed(tmp_path, *OTLP)


@pytest.mark.parametrize("off", [("OTEL_SDK_DISABLED", "true"), ("OTEL_METRICS_EXPORTER", "none")])
def test_opentelemetry_can_be_switched_off_and_remote_write_goes_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    off: tuple[str, str],
) -> None:
    monkeypatch.setenv(*off)
    assert pushed(tmp_path, *OTLP) is None
    assert "no metrics are sent" in capsys.readouterr().err
    found = pushed(tmp_path, *OTLP, *WRITE)
    assert found is not None
    assert [outlet.name for outlet in found.outlets] == ["remote_write"]


def test_otlp_goes_where_variables_say_with_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "api-key=a")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=one,host.name=theirs")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "training")
    (tmp_path / "first").mkdir()
    told = RunFile("first", 1_700_000_000_000_000_000, 1)
    (tmp_path / "first" / "run.json").write_bytes(msgspec.json.encode(told))
    with http_sink() as sink:
        found = pushed(tmp_path, "--otlp-metrics", sink.address)
        assert found is not None
        (outlet,) = found.outlets
        outlet.start()
        outlet.offer(look_at("first"), 1_800_000_000_000_000_000)
        with sink.came:
            assert sink.came.wait_for(lambda: sink.metric_requests, 30)
        outlet.close()
    (part,) = sink.metric_requests[0].resource_metrics
    assert {pair.key: pair.value.string_value for pair in part.resource.attributes} == {
        "service.name": "training",
        "service.instance.id": f"{socket.gethostname()}:7077",
        "host.name": "theirs",
        "team": "one",
    }
    assert sink.headers[0]["api-key"] == "a"
    (duration,) = [metric for metric in sink.metrics if metric.name == DURATIONS.name][:1]
    assert duration.histogram.data_points[0].start_time_unix_nano == told.created_ns


def test_series_are_told_apart_by_where_the_page_is(tmp_path: Path) -> None:
    found = pushed(tmp_path, *WRITE, "--remote-write-label", "cluster=a,zone=b")
    assert found is not None
    taken = found.outlets[0]._writer.encode(look_at("a"), 1_800_000_000_000_000_000)
    where = f"cluster=a,instance={socket.gethostname()}:7077,job=rollscope,run=a,zone=b"
    assert f"rollscope_sessions_queued{{{where}}}" in samples_of(taken)
