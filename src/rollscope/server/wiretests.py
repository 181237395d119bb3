"""Trying a wire: what a program at its other end would get, now."""

import asyncio
import http.client
import json
import os
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from rollscope.collect.collector import Collector
from rollscope.collect.exposition import ExpositionReader
from rollscope.errors import RollscopeError
from rollscope.otlp.answering import Form, Signal
from rollscope.otlp.receiver import Receiver
from rollscope.server.monitors import Monitors
from rollscope.store.embedded import RunStore

__all__ = ["OwnAddress", "WireTest", "known_tests", "run_test"]

_PATIENCE_S: Final = 10.0
_MOST_BYTES: Final = 32 * 1024 * 1024
_OPENMETRICS: Final = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
_SCRATCH_RUN: Final = "scratch"


class OwnAddress(NamedTuple):
    """Where this server listens, and what it wants to hear."""

    base: str
    """Such as `http://127.0.0.1:7077`."""
    name: str
    """What the Host header says."""
    token: str | None


class WireTest(msgspec.Struct):
    """How a test went."""

    is_good: bool
    sentence: str


class _Answer(NamedTuple):
    status: int
    body: bytes
    took_ms: float


Test = Callable[[OwnAddress, Monitors], Awaitable[WireTest]]


async def run_test(name: str, own: OwnAddress, monitors: Monitors) -> WireTest:
    """Try one of the wires that `known_tests` names."""
    try:
        return await _TESTS[name](own, monitors)
    except (OSError, http.client.HTTPException, RollscopeError) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return WireTest(False, f"It cannot be reached: {why}.")


def known_tests() -> list[str]:
    """Name the wires that can be tried."""
    return list(_TESTS)


async def _prometheus(own: OwnAddress, _: Monitors) -> WireTest:
    """Fetch our own metrics over the network, as Prometheus does."""
    answer = await _ask(f"{own.base}/metrics", {**_headers(own), "Accept": _OPENMETRICS})
    if answer.status != http.HTTPStatus.OK:
        return WireTest(False, f"/metrics answers with the status {answer.status}.")
    reader = ExpositionReader(lambda _: True)
    await asyncio.to_thread(reader.feed, answer.body)
    read = reader.close()
    said = (
        f"{read.series:,} series of {len(read.types):,} metrics, {len(answer.body):,} bytes, in "
        f"{answer.took_ms:,.0f} ms"
    )
    if read.bad_lines:
        return WireTest(False, f"{said}; {read.bad_lines:,} lines cannot be read.")
    return WireTest(True, f"{said}; every line can be read.")


async def _otlp(own: OwnAddress, _: Monitors) -> WireTest:
    """Send a request without spans to ourselves, and one with a span to a place that goes away."""
    answer = await _ask(
        f"{own.base}/v1/{Signal.TRACES}",
        {**_headers(own), "Content-Type": str(Form.JSON)},
        json.dumps({"resourceSpans": []}).encode(),
    )
    if answer.status != http.HTTPStatus.OK:
        return WireTest(False, f"/v1/traces answers with the status {answer.status}.")
    started = time.perf_counter()
    sent = int.from_bytes(os.urandom(8)) >> 1
    found = await _round_trip(sent)
    took_ms = answer.took_ms + (time.perf_counter() - started) * 1e3
    if [one["span_id"] for one in found] != [sent]:
        return WireTest(False, f"A test span was sent, and {len(found)} others came back.")
    return WireTest(
        True,
        f"/v1/traces takes requests; a test span that belongs to no session became a "
        f"{found[0]['kind']} of a run made for it, in {took_ms:,.0f} ms. Nothing was kept.",
    )


async def _round_trip(span_id: int) -> list[dict[str, Any]]:
    """Have a receiver of its own write a span into a folder, and read back what is there."""
    with tempfile.TemporaryDirectory(prefix="rollscope-wiring-") as folder:
        collector = Collector(Path(folder))
        try:
            receiver = Receiver(collector)
            body = _one_span(span_id)
            await collector.do(0, lambda: receiver.take(Signal.TRACES, Form.JSON, body))
        finally:
            await collector.close()
        return await asyncio.to_thread(_spans_of, Path(folder, _SCRATCH_RUN))


def _one_span(span_id: int) -> bytes:
    now_ns = time.time_ns()
    span = {
        "traceId": os.urandom(16).hex(),
        "spanId": f"{span_id:016x}",
        "name": "wiring test",
        "startTimeUnixNano": str(now_ns - 1_000_000),
        "endTimeUnixNano": str(now_ns),
    }
    named = {"service.name": "rollscope", "rollscope.run": _SCRATCH_RUN}
    attributes = [{"key": key, "value": {"stringValue": text}} for key, text in named.items()]
    sent = {"resource": {"attributes": attributes}, "scopeSpans": [{"spans": [span]}]}
    return json.dumps({"resourceSpans": [sent]}).encode()


def _spans_of(run: Path) -> list[dict[str, Any]]:
    with RunStore(run, threads=1) as store:
        found: list[dict[str, Any]] = store.query("SELECT span_id, kind FROM spans").to_pylist()
        return found


async def _grafana(_: OwnAddress, monitors: Monitors) -> WireTest:
    return await _health(monitors.grafana_url, "/api/health")


async def _tempo(_: OwnAddress, monitors: Monitors) -> WireTest:
    return await _health(monitors.tempo_url, "/ready")


async def _health(base: str | None, path: str) -> WireTest:
    if base is None:
        return WireTest(False, "Its address was not given to the server.")
    answer = await _ask(f"{base}{path}", {})
    is_good = answer.status == http.HTTPStatus.OK
    verb = "answers" if is_good else f"answers with the status {answer.status}"
    return WireTest(is_good, f"{path} {verb}, in {answer.took_ms:,.0f} ms.")


_TESTS: Final[dict[str, Test]] = {
    "prometheus": _prometheus,
    "otlp": _otlp,
    "grafana": _grafana,
    "tempo": _tempo,
}


def _headers(own: OwnAddress) -> dict[str, str]:
    named = {"Host": own.name}
    return named if own.token is None else {**named, "Authorization": f"Bearer {own.token}"}


async def _ask(url: str, headers: Mapping[str, str], body: bytes | None = None) -> _Answer:
    return await asyncio.to_thread(_exchange, url, headers, body)


def _exchange(url: str, headers: Mapping[str, str], body: bytes | None) -> _Answer:
    """Ask once, following nothing, and read a bounded answer."""
    parts = urlsplit(url)
    connection = _connection(parts.scheme, parts.netloc)
    started = time.perf_counter()
    try:
        connection.request("GET" if body is None else "POST", parts.path, body, dict(headers))
        response = connection.getresponse()
        read = response.read(_MOST_BYTES)
    finally:
        connection.close()
    return _Answer(response.status, read, (time.perf_counter() - started) * 1e3)


def _connection(scheme: str, place: str) -> http.client.HTTPConnection:
    if scheme != "https":
        return http.client.HTTPConnection(place, timeout=_PATIENCE_S)
    # Whether there is an answer is asked here; a certificate that only some trust is no fault.
    secure = ssl.create_default_context()
    secure.check_hostname = False
    secure.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(place, timeout=_PATIENCE_S, context=secure)
