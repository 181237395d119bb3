"""Metrics pushed by a real server to a real Prometheus, and through a real collector."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import rotel  # type: ignore[import-untyped]
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from rollscope.cli.main import main
from rollscope.instrument.tracer import Tracer
from tests.integration.support import PATIENCE_S, Lab
from tests.integration.test_server_process import start_view
from tests.monitoring.prometheus import Prometheus, free_port, running_prometheus, wait_until
from tests.otlp_sink import http_sink

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.otlp_sink import Sink

STEADY = ("counter", "histogram", "info")
"""Kinds of families that stand still once their run has ended."""


def record(runs: Path, name: str) -> None:
    tracer = Tracer(run=name, dir=str(runs))
    with tracer.step(1):
        for number in range(6):
            with tracer.task(f"math/{number}"), tracer.session(sample=0):
                with tracer.phase("generate"):
                    pass
                tracer.count("tries", 2, kind="first")
                tracer.observe("wait_seconds", 0.25)
    tracer.shutdown()


@contextmanager
def collecting(sink: Sink) -> Iterator[tuple[str, str]]:
    """Run a collector that passes on to a sink, and give where it takes HTTP and gRPC."""
    ports = [free_port(), free_port()]
    agent = Path(rotel.__file__).parent / "rotel-agent"
    arguments = (
        *(f"--otlp-http-endpoint=127.0.0.1:{ports[0]}", "--exporter=otlp"),
        *(f"--otlp-grpc-endpoint=127.0.0.1:{ports[1]}", "--batch-timeout=50ms"),
        *(f"--otlp-exporter-endpoint={sink.address}", "--otlp-exporter-protocol=http"),
    )
    quiet = subprocess.DEVNULL
    collector = subprocess.Popen([agent, "start", *arguments], stdout=quiet, stderr=quiet)
    try:
        yield f"http://127.0.0.1:{ports[0]}", f"http://127.0.0.1:{ports[1]}"
    finally:
        collector.send_signal(signal.SIGTERM)
        collector.wait(30)


def scrape(address: str) -> list[Any]:
    """Give the samples of /metrics that stand still."""
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    request = urllib.request.Request(f"{address}metrics", headers=accept)  # noqa: S310  (loopback)
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
        text = answer.read().decode()
    families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return [sample for each in families if each.type in STEADY for sample in each.samples]


def stored(prometheus: Prometheus) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Give everything that a Prometheus knows of us now."""
    found = {}
    for one in prometheus.query('{job="rollscope"}'):
        labels = dict(one["metric"])
        assert labels.pop("job") == "rollscope"
        assert labels.pop("instance") == "the-head"
        assert labels.pop("team") == "one"
        found[labels.pop("__name__"), frozenset(labels.items())] = float(one["value"][1])
    return found


def test_a_prometheus_that_came_late_knows_what_a_scrape_would_have_told(
    lab: Lab, tmp_path: Path
) -> None:
    runs = lab.folder / "runs"
    record(runs, "first")
    record(runs, "second")
    port = free_port()
    arguments = ("--remote-write", f"http://127.0.0.1:{port}/api/v1/write", "--push-every", "0.5")
    labels = ("--remote-write-label", "instance=the-head", "--remote-write-label", "team=one")
    viewer, address = start_view(lab, "runs", "--no-token", *arguments, *labels)
    failures = "rollscope_export_failures_total"
    wait_until(lambda: any(s.name == failures and s.value > 0 for s in scrape(address)))
    with running_prometheus("", tmp_path / "prometheus", port=port) as prometheus:
        expected = {
            (sample.name, frozenset((k, v) for k, v in sample.labels.items() if v)): sample.value
            for sample in scrape(address)
            if sample.name != failures
        }
        assert len(expected) > 100
        prometheus.wait_until(lambda: expected.keys() <= stored(prometheus).keys())
        known = stored(prometheus)
        assert {key: known[key] for key in expected} == expected
        prometheus.wait_until(lambda: (prometheus.value(failures) or 0) > 0)

        (shown, *_) = prometheus.wait_until(
            lambda: prometheus.exemplars('rollscope_session_duration_seconds_bucket{run="first"}')
        )
        assert len(shown["exemplars"][0]["labels"]["trace_id"]) == 32

        shutil.rmtree(runs / "first")
        prometheus.wait_until(lambda: not prometheus.query('{run="first"}'), what="staleness")
        assert prometheus.query('rollscope_run_info{run="second"}')

        viewer.send_signal(signal.SIGTERM)
        assert viewer.wait(PATIENCE_S) == 0
        prometheus.wait_until(lambda: not stored(prometheus), what="the end to be known")
        assert "out-of-order" not in prometheus.said().lower().replace(" ", "-")


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_collector_passes_on_what_a_scrape_would_have_told(
    lab: Lab, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", protocol)
    record(lab.folder / "runs", "first")
    with http_sink() as sink, collecting(sink) as endpoints:
        endpoint = endpoints[protocol == "grpc"]
        viewer, address = start_view(
            lab, "runs", "--no-token", "--otlp-metrics", endpoint, "--push-every", "0.5"
        )
        expected = scrape(address)

        def points() -> dict[tuple[str, frozenset[tuple[str, str]]], Any]:
            with sink.came:
                return {
                    (
                        metric.name,
                        frozenset((a.key, a.value.string_value) for a in point.attributes),
                    ): point
                    for metric in sink.metrics
                    for point in getattr(metric, metric.WhichOneof("data") or "").data_points
                }

        counts = {
            (sample.name, frozenset((k, v) for k, v in sample.labels.items() if v)): sample.value
            for sample in expected
            if sample.name.endswith("_total") and "run" in sample.labels
        }
        assert counts
        wait_until(lambda: counts.keys() <= points().keys())
        known = points()
        assert {key: known[key].as_double for key in counts} == counts
        key = (
            "rollscope_session_duration_seconds",
            frozenset({("run", "first"), ("family", "math")}),
        )
        duration = known[key]
        assert duration.count == sum(duration.bucket_counts) == 6
        assert len(duration.explicit_bounds) + 1 == len(duration.bucket_counts)
        created_ns = json.loads((lab.folder / "runs/first/run.json").read_text())["created_ns"]
        assert duration.start_time_unix_nano == created_ns
        assert any(len(exemplar.trace_id) == 16 for exemplar in duration.exemplars)
        viewer.send_signal(signal.SIGTERM)
        assert viewer.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["--remote-write", "nowhere"], "http://HOST:9090/api/v1/write"),
        (["--remote-write-label", "a=b"], "--remote-write URL"),
        (["--remote-write", "http://h/", "--remote-write-label", "a-b=c"], "no name of a label"),
        (["--remote-write", "http://h/", "--remote-write-header", "x"], "NAME=VALUE"),
        (["--otlp-metrics", "nowhere"], "http://HOST:4318"),
        (["--otlp-metrics", "http://h:1", "--push-every", "0"], "--push-every"),
    ],
)
def test_options_that_cannot_be_used_are_said(
    tmp_path: Path, arguments: list[str], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", "--dir", str(tmp_path), "--port", "0", *arguments]) in (1, 2)
    assert advice in capsys.readouterr().err
