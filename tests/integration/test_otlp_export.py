"""Runs exported to real collectors, and compared with the run span by span."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import rotel  # type: ignore[import-untyped]

import rollscope as rs
from rollscope.cli.main import main
from rollscope.instrument.tracer import Tracer
from rollscope.otlp import jsonform
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape
from tests.integration.served import TOKEN, served
from tests.otlp_sink import Reply, Sink, grpc_sink, http_sink

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

ROOTS = ("task", "step")
SHAPE = RunShape(
    steps=2,
    tasks_per_step=4,
    stuck_sessions=1,
    loop_lag=True,
    declares_slots=True,
    gates=True,
    unassigned_share=0.2,
)
UNAVAILABLE = Reply(503, {"Retry-After": "0"})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "exported"
    generate_run(path, SHAPE)
    return path


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)


def export(run: Path, *arguments: str) -> None:
    assert main(["export", str(run), *arguments]) == 0


def ended_rows(run: Path) -> dict[int, dict[str, Any]]:
    with rs.open(run) as opened:
        rows = opened.sql("SELECT * FROM spans WHERE status <> 'open'").to_pylist()
    return {row["span_id"]: row for row in rows}


def check_spans(spans: list[Span], rows: dict[int, dict[str, Any]]) -> None:
    """See that spans are those of the run: ids, parents, times and how they ended."""
    found = {int.from_bytes(span.span_id): span for span in spans}
    assert len(found) == len(spans), "a span came twice"
    assert found.keys() == rows.keys()
    for span_id, row in rows.items():
        span = found[span_id]
        parent = 0 if row["kind"] in ROOTS else row["parent_id"] or 0
        assert span.trace_id == row["trace_id"]
        assert int.from_bytes(span.parent_span_id) == parent
        assert span.start_time_unix_nano == row["start_ns"]
        assert span.end_time_unix_nano == row["end_ns"]
        assert (span.status.code == 2) == (row["status"] != "ok")


def attrs_of(span: Span) -> dict[str, Any]:
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes
    }


def free_port() -> int:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


def test_every_span_reaches_a_collector_over_http(run: Path) -> None:
    with http_sink() as sink:
        export(run, "--endpoint", sink.address, "--header", "X-Scope-OrgID=team one")
    check_spans(sink.spans, ended_rows(run))
    assert len(sink.connections) == 1, "the connection was not kept"
    assert len(sink.requests) > 1
    assert {headers["X-Scope-OrgID"] for headers in sink.headers} == {"team one"}
    assert {headers["Content-Encoding"] for headers in sink.headers} == {"gzip"}


def test_every_span_reaches_a_collector_over_grpc(run: Path) -> None:
    with grpc_sink() as sink:
        sink.replies = [UNAVAILABLE]
        arguments = ("--protocol", "grpc", "--header", "Authorization=Bearer abc")
        export(run, "--endpoint", sink.address, *arguments)
    check_spans(sink.spans, ended_rows(run))
    assert sink.headers[-1]["authorization"] == "Bearer abc"


def test_every_span_is_in_a_file_of_json_lines(run: Path, tmp_path: Path) -> None:
    export(run, "-o", str(tmp_path / "out.jsonl"))
    lines = (tmp_path / "out.jsonl").read_bytes().splitlines()
    forms = [form for line in lines for form in jsonform.read_traces(line).spans]
    rows = ended_rows(run)
    assert {form.span_id for form in forms} == rows.keys()
    for form in forms:
        row = rows[form.span_id]
        assert (form.trace_id, form.start_ns, form.end_ns) == (
            row["trace_id"],
            row["start_ns"],
            row["end_ns"],
        )


def test_spans_go_over_tls_to_whoever_the_given_certificate_vouches_for(run: Path) -> None:
    certificate = str(Path(__file__).parents[1] / "tls" / "cert.pem")
    with http_sink(is_tls=True) as sink:
        export(run, "--endpoint", sink.address, "--certificate", certificate)
        assert len(sink.spans) == len(ended_rows(run))
        assert main(["export", str(run), "--endpoint", sink.address]) == 1


def test_a_task_is_the_root_of_its_trace_and_links_to_its_step(run: Path) -> None:
    with http_sink() as sink:
        export(run, "--endpoint", sink.address, "--scope", "1")
    rows = ended_rows(run)
    by_kind: dict[str, list[Span]] = {}
    for span in sink.spans:
        attrs = attrs_of(span)
        assert attrs["rollscope.step"] == 1
        by_kind.setdefault(attrs["rollscope.kind"], []).append(span)
    (step,) = by_kind["step"]
    assert step.name == "step 1"
    for task in by_kind["task"]:
        row = rows[int.from_bytes(task.span_id)]
        assert task.name == f"rollout {row['family']}"
        assert not task.parent_span_id
        assert [(link.trace_id, link.span_id) for link in task.links] == [
            (step.trace_id, step.span_id)
        ]
    names = {span.name.partition(" ")[0] for span in by_kind["phase"]}
    assert {"chat", "execute_tool", "reward"} <= names


def test_metrics_are_sums_of_all_time(run: Path) -> None:
    with http_sink() as sink:
        export(run, "--endpoint", sink.address, "--metrics")
    with rs.open(run) as opened:
        sql = "SELECT sum(count) AS n, sum(value) AS total FROM metrics WHERE type = 'histogram'"
        truth = opened.sql(sql).to_pylist()[0]
    latest: dict[Any, Any] = {}
    for request in sink.metric_requests:
        for resource in request.resource_metrics:
            process = str(resource.resource)
            for metric in resource.scope_metrics[0].metrics:
                for point in metric.exponential_histogram.data_points:
                    latest[process] = max(latest.get(process, point), point, key=_time_of)
    assert sum(point.count for point in latest.values()) == truth["n"]
    assert sum(point.sum for point in latest.values()) == pytest.approx(truth["total"])
    assert all(sum(p.positive.bucket_counts) == p.count for p in latest.values())
    assert any(metric.WhichOneof("data") == "gauge" for metric in sink.metrics)


def _time_of(point: Any) -> int:
    return int(point.time_unix_nano)


def test_a_busy_collector_is_asked_again_and_told_less_at_a_time(run: Path) -> None:
    with http_sink() as sink:
        sink.most_spans = 100
        sink.replies = [Reply(429, {"Retry-After": "0"}), UNAVAILABLE, Reply(502, {})]
        export(run, "--endpoint", sink.address)
    check_spans(sink.spans, ended_rows(run))


def test_what_a_collector_leaves_out_is_told(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = b'{"partialSuccess": {"rejectedSpans": "3", "errorMessage": "too old"}}'
    with http_sink() as sink:
        sink.replies = [Reply(200, {}, said)]
        export(run, "--endpoint", sink.address, "--protocol", "http/json")
    assert "left out 3 of them: too old" in capsys.readouterr().out


def test_a_failed_export_goes_on_where_it_stopped(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = str(tmp_path / "position")
    with http_sink() as sink:
        command = ["export", str(run), "--endpoint", sink.address, "--state", state]
        sink.replies = [None, Reply(401, {})]
        assert main([*command, "--batch", "100"]) == 1
        complaint = capsys.readouterr().err
        assert "Authorization=Bearer" in complaint
        assert 0 < len(sink.spans) <= 100  # the engine hands out rows in lots of any size
        assert f"{len(sink.spans)} spans were taken" in complaint
        assert main(command) == 0
        check_spans(sink.spans, ended_rows(run))
        assert main(command) == 0
        assert len(sink.spans) == len(ended_rows(run))


def test_our_own_receiver_gives_the_same_run_back(run: Path, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with served(tmp_path) as site:
            arguments = ("--endpoint", site.url, "--header", f"Authorization=Bearer {TOKEN}")
            await asyncio.to_thread(export, run, *arguments)

    asyncio.run(scenario())
    there, here = ended_rows(tmp_path / run.name), ended_rows(run)
    assert there.keys() == here.keys()
    same = ["trace_id", "start_ns", "end_ns", "kind", "session_id", "step", "task_key", "sample"]
    same += ["group_key", "version_start", "reason", "lane", "tokens_out"]
    for span_id, row in here.items():
        copy = there[span_id]
        assert {name: copy[name] for name in same} == {name: row[name] for name in same}
        if row["kind"] not in ROOTS:
            assert copy["parent_id"] == row["parent_id"]
        if row["kind"] in ("phase", "state"):
            assert copy["name"] == row["name"]
        if row["status"] != "lost":
            assert copy["status"] == row["status"]


def test_a_collector_in_between_gets_and_gives_every_span(run: Path) -> None:
    agent = Path(rotel.__file__).parent / "rotel-agent"
    ports = [free_port(), free_port()]
    with http_sink() as sink:
        arguments = (
            *(f"--otlp-http-endpoint=127.0.0.1:{ports[0]}", "--exporter=otlp"),
            *(f"--otlp-grpc-endpoint=127.0.0.1:{ports[1]}", "--batch-timeout=50ms"),
            *(f"--otlp-exporter-endpoint={sink.address}", "--otlp-exporter-protocol=http"),
        )
        quiet = subprocess.DEVNULL
        collector = subprocess.Popen([agent, "start", *arguments], stdout=quiet, stderr=quiet)
        try:
            # It may take a while until it listens, which is what trying again is for.
            export(run, "--endpoint", f"http://127.0.0.1:{ports[0]}")
            sink.wait_for(len(ended_rows(run)))
        finally:
            collector.send_signal(signal.SIGTERM)
            collector.wait(30)
    check_spans(sink.spans, ended_rows(run))


def follow(run: Path, sink: Sink, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "rollscope", "export", str(run), "--follow", *more]
    env = {**os.environ, "OTEL_BSP_SCHEDULE_DELAY": "50"}
    return subprocess.Popen([*command, "--endpoint", sink.address], env=env)


def record(tracer: Tracer, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        with tracer.task(f"math/{number}"), tracer.session(sample=0), tracer.phase("generate"):
            pass
    tracer.flush()


def test_a_run_is_followed_through_kills_and_refusals_without_a_span_twice(tmp_path: Path) -> None:
    tracer = Tracer(run="live", dir=str(tmp_path))
    run, state = tmp_path / "live", str(tmp_path / "position")
    with http_sink() as sink:
        record(tracer, 50)
        follower = follow(run, sink, "--state", state, "--batch", "20")
        try:
            sink.wait_for(150)
            sink.replies = [UNAVAILABLE, UNAVAILABLE]
            record(tracer, 50, 50)
            sink.wait_for(300)
        finally:
            follower.terminate()
            assert follower.wait(30) == 0
        record(tracer, 50, 100)
        follower = follow(run, sink, "--state", state)
        try:
            sink.wait_for(450)
            record(tracer, 50, 150)
            sink.wait_for(600)
        finally:
            follower.terminate()
            assert follower.wait(30) == 0
        tracer.shutdown()
    check_spans(sink.spans, ended_rows(run))


def test_an_open_span_is_told_of_once_and_again_when_it_ends(tmp_path: Path) -> None:
    tracer = Tracer(run="live", dir=str(tmp_path))
    with http_sink() as sink:
        with tracer.session(sample=0):
            tracer.flush()
            follower = follow(tmp_path / "live", sink, "--pending")
            sink.wait_for(1)
            (pending,) = sink.spans
        try:
            tracer.flush()
            sink.wait_for(2)
        finally:
            follower.terminate()
            assert follower.wait(30) == 0
        tracer.shutdown()
        _, final = sink.spans
    assert pending.span_id == final.span_id
    assert pending.end_time_unix_nano == pending.start_time_unix_nano
    assert final.end_time_unix_nano > final.start_time_unix_nano == pending.start_time_unix_nano
    assert attrs_of(pending)["rollscope.span_type"] == "pending"
    assert attrs_of(final)["rollscope.span_type"] == "span"


def test_a_summary_can_be_read_by_programs(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export(run, "-o", str(tmp_path / "out.jsonl"), "--json")
    summary = json.loads(capsys.readouterr().out)
    assert summary["spans"] == len(ended_rows(run))
    assert summary["requests"] == len((tmp_path / "out.jsonl").read_bytes().splitlines())


@pytest.mark.parametrize(
    "variable", [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")]
)
def test_nothing_is_sent_where_opentelemetry_is_switched_off(
    run: Path, monkeypatch: pytest.MonkeyPatch, variable: tuple[str, str]
) -> None:
    monkeypatch.setenv(*variable)
    with http_sink() as sink:
        export(run, "--endpoint", sink.address)
    assert not sink.headers


def test_a_sampler_keeps_every_trace_in_which_something_failed(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    with http_sink() as sink:
        export(run, "--endpoint", sink.address)
    rows = ended_rows(run).values()
    failed = {row["trace_id"] for row in rows if row["status"] != "ok"}
    kept = {span.trace_id for span in sink.spans}
    assert failed
    assert kept == failed
    assert len(sink.spans) == sum(row["trace_id"] in failed for row in rows)


@pytest.mark.parametrize(
    ("arguments", "code", "advice"),
    [
        ([], 2, "--endpoint URL"),
        (["-o", "x.jsonl", "--endpoint", "http://127.0.0.1:1"], 2, "not both"),
        (["--endpoint", "nowhere"], 1, "http://HOST:4318"),
        (["--endpoint", "http://127.0.0.1:1", "--header", "x"], 2, "NAME=VALUE"),
        (["--endpoint", "http://127.0.0.1:1", "--batch", "0"], 2, "--batch"),
        (["--endpoint", "http://127.0.0.1:1", "--scope", "99"], 1, "no step 99"),
        (["--endpoint", "http://127.0.0.1:1"], 1, "127.0.0.1:1 cannot be reached"),
        (["-o", "/nowhere/out.jsonl"], 1, "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_said_with_what_to_do(
    run: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    advice: str,
) -> None:
    monkeypatch.setenv("OTEL_BSP_EXPORT_TIMEOUT", "10")
    assert main(["export", str(run), *arguments]) == code
    assert advice in capsys.readouterr().err
