"""The official Prometheus client as the one that is asked, by `rollscope view` as a process."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, Summary
from prometheus_client.exposition import make_wsgi_app
from prometheus_client.openmetrics.exposition import generate_latest

import rollscope as rs
from rollscope.collect.engineseries import Chosen, SeriesChoice
from rollscope.collect.exposition import ExpositionReader
from rollscope.model.kinds import MetricType
from tests.integration.test_otlp_senders import program, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = """SELECT name, type, sum(value) AS value, sum(count) AS count
    FROM metrics WHERE name LIKE 'vllm:%' OR name LIKE 'app_%' GROUP BY ALL"""

GROWN = ("vllm:generation_tokens_total", "vllm:time_to_first_token_seconds", "app_size_bytes_sum")


class Engine:
    """Metrics of every kind, named as an engine and an application would name them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        kept: dict[str, Any] = {"registry": self.registry}
        self.cache = Gauge("vllm:kv_cache_usage_perc", "of 1", ["model_name"], **kept)
        self.tokens = Counter("vllm:generation_tokens", "tokens", ["model_name"], **kept)
        self.latency = Histogram(
            "vllm:time_to_first_token_seconds", "first", ["model_name"], buckets=(0.1, 1), **kept
        )
        self.wait = Histogram("app:wait_seconds", "waits", buckets=(0.1, 1), **kept)
        self.size = Summary("app_size", "sizes", unit="bytes", **kept)
        Info("app_build", "what it is", **kept).info({"version": '1 "quoted" # {odd}'})
        self.cache.labels('a\\b "c"\n}').set(0.25)

    def work(self) -> None:
        model = 'a\\b "c"\n}'
        self.tokens.labels(model).inc(40, exemplar={"trace_id": "abc # {x}"})
        self.latency.labels(model).observe(0.5, exemplar={"session": "s1"})
        self.wait.observe(0.5)
        self.size.observe(7)


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def exposed(registry: CollectorRegistry) -> Iterator[int]:
    with make_server("127.0.0.1", 0, make_wsgi_app(registry), handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_openmetrics_of_the_official_client_is_read_without_a_bad_line() -> None:
    engine = Engine()
    engine.work()
    choice = SeriesChoice(("*",))
    reader = ExpositionReader(choice.wants)
    for byte in generate_latest(engine.registry):  # type: ignore[no-untyped-call]
        reader.feed(bytes([byte]))
    read = reader.close()
    assert read.bad_lines == 0
    values = {point.name: point.value for point in read.points}
    assert values["vllm_generation_tokens_total"] == 40
    assert values["vllm_time_to_first_token_seconds_sum"] == 0.5
    assert (values["app_size_bytes_sum"], values["app_build_info"]) == (7, 1)
    chosen = choice.choose("app_wait_seconds_bucket", read.types)
    assert chosen == Chosen("app_wait_seconds", MetricType.HISTOGRAM, "_bucket")
    (cache,) = (point for point in read.points if point.name.endswith("usage_perc"))
    assert cache.labels == {"model_name": 'a\\b "c"\n}'}
    (build,) = (point for point in read.points if point.name == "app_build_info")
    assert build.labels == {"version": '1 "quoted" # {odd}'}


def test_what_a_real_endpoint_shows_stands_in_the_run(tmp_path: Path) -> None:
    runs, listed = tmp_path / "runs", tmp_path / "targets.json"
    engine = Engine()
    options = ("--port", "0", "--scrape-every", "0.2", "--scrape-also", "app_*")
    server = (sys.executable, "-m", "rollscope", "view", "--dir", str(runs), *options)

    def found() -> dict[str, Any]:
        return {row["name"]: row for row in rows_of(runs / "live", ROWS)}

    async def until(*names: str) -> dict[str, Any]:
        async with asyncio.timeout(60):
            while True:
                rows = await asyncio.to_thread(found)
                if rows.keys() >= set(names):
                    return rows
                await asyncio.sleep(0.1)

    async def scenario(*command: str) -> dict[str, Any]:
        async with program(*command) as process:
            await until("vllm:kv_cache_usage_perc")
            engine.work()
            rows = await until(*GROWN)
            process.terminate()
        return rows

    with exposed(engine.registry) as port, rs.Tracer(run="live", dir=runs) as tracer:
        groups = [{"targets": [f"127.0.0.1:{port}"], "labels": {"replica": "r0"}}]
        listed.write_text(json.dumps(groups))
        tracer.flush()
        rows = asyncio.run(scenario(*server, "--scrape-file", str(listed)))
    assert rows["vllm:generation_tokens_total"]["value"] == 40
    assert rows["vllm:time_to_first_token_seconds"]["value"] == 0.5
    assert rows["vllm:time_to_first_token_seconds"]["count"] == 1
    assert rows["app_size_bytes_sum"]["value"] == 7
    assert not any(name.endswith("_created") for name in rows)
