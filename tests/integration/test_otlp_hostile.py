"""Requests that no honest sender makes: each gets its status and a sentence, and harms nobody."""

from __future__ import annotations

import asyncio
import gzip
import time
import zlib
from pathlib import Path
from typing import Any

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

import rollscope as rs
from tests.integration.served import TOKEN, Site, served
from tests.unit.otlp.desk import any_value, span, trace_request

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
MIB = 1024 * 1024


async def post(
    site: Site, body: bytes, kind: str = PROTOBUF, signal: str = "traces", **headers: str
) -> tuple[int, str, bytes]:
    sent = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    async with site.client.post(f"{site.url}/v1/{signal}", data=body, headers=sent) as answer:
        return answer.status, answer.headers.get("Content-Type", ""), await answer.read()


def good(number: int) -> bytes:
    now = time.time_ns()
    made = span("good", number, 1000, start=now - 1000, end=now)
    return bytes(trace_request(made).SerializeToString())


def nested_protobuf(depth: int) -> bytes:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    made = trace_request(span("deep", 1))
    if depth < 50:
        made.resource_spans[0].scope_spans[0].spans[0].attributes.add(
            key="deep", value=any_value(value)
        )
        return bytes(made.SerializeToString())
    data = b"\x0a\x01x"
    for _ in range(depth):  # an array in an array, which the library itself refuses to make
        data = b"\x0a" + _varint(len(data)) + data
        data = b"\x2a" + _varint(len(data)) + data
    pair = b"\x0a\x04deep\x12" + _varint(len(data)) + data
    inner = bytes(span("deep", 1).SerializeToString()) + b"\x4a" + _varint(len(pair)) + pair
    part = b"\x12" + _varint(len(inner)) + inner
    owned = b"\x12" + _varint(len(part)) + part
    return b"\x0a" + _varint(len(owned)) + owned


def _varint(number: int) -> bytes:
    data = bytearray()
    while number >= 0x80:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number])


WHOLE = trace_request(span("x", 1, attrs={"a": "b"})).SerializeToString()
DEEP_JSON = b'{"resourceSpans":' + b'[{"resourceSpans":' * 50_000 + b"1" + b"}]" * 50_000 + b"}"
BAD_UTF8 = b'{"resourceSpans":[{"resource":{"attributes":[{"key":"\xff\xfe"}]}}]}'
PACKED = {"Content_Encoding": "gzip"}
CASES: dict[str, tuple[bytes, str, dict[str, str], int]] = {
    "a type that nobody speaks": (WHOLE, "text/plain", {}, 415),
    "an unknown packing": (WHOLE, PROTOBUF, {"Content_Encoding": "br"}, 415),
    "protobuf cut short": (WHOLE[:-3], PROTOBUF, {}, 400),
    "no protobuf at all": (b"\xff" * 100, PROTOBUF, {}, 400),
    "json cut short": (b"{", JSON, {}, 400),
    "json of another shape": (b"[]", JSON, {}, 400),
    "bytes that are no text": (BAD_UTF8, JSON, {}, 400),
    "json without a floor": (DEEP_JSON, JSON, {}, 400),
    "not packed as it says": (WHOLE, PROTOBUF, PACKED, 400),
    "half a gzip": (gzip.compress(WHOLE)[:-9], PROTOBUF, PACKED, 400),
    "a bomb": (gzip.compress(bytes(80 * MIB), 1), JSON, PACKED, 413),
}


def test_a_bad_request_is_told_so_and_harms_no_other(tmp_path: Path) -> None:
    async def scenario() -> dict[str, tuple[int, str, bytes]]:
        answers = {}
        async with served(tmp_path) as site:
            for number, (name, (body, kind, headers, _)) in enumerate(CASES.items()):
                answers[name] = await post(site, body, kind, **headers)
                assert await post(site, good(number + 1)) == (200, PROTOBUF, b"")
        return answers

    answers = asyncio.run(scenario())
    assert {name: answer[0] for name, answer in answers.items()} == {
        name: case[3] for name, case in CASES.items()
    }
    for name, (_, kind, body) in answers.items():
        sent = CASES[name][1]
        assert kind.startswith(sent if sent == PROTOBUF else JSON), name
        is_json = kind.startswith(JSON)
        message = msgspec.json.decode(body)["message"] if is_json else body[4:].decode()
        assert message.isprintable(), name
        assert len(message) > 10, name
    with rs.open(tmp_path / "agents") as run:
        kept = run.sql("SELECT count(*) AS n FROM spans WHERE name = 'good'").to_pylist()
    assert kept == [{"n": len(CASES)}]


def test_all_that_is_right_is_taken_from_a_request_that_is_partly_wrong(tmp_path: Path) -> None:
    async def scenario() -> list[tuple[int, str, bytes]]:
        async with served(tmp_path) as site:
            return [
                await post(site, b""),
                await post(site, b"{}", f"{JSON}; charset=utf-8"),
                await post(site, nested_protobuf(20)),
                await post(site, nested_protobuf(200)),
                await post(site, zlib.compress(good(5)), Content_Encoding="deflate"),
                await post(site, good(6) + b"\xf2\x7f\x03abc"),
            ]

    empty, empty_json, deep, deeper, packed, unknown = asyncio.run(scenario())
    assert empty == (200, PROTOBUF, b"")
    assert (empty_json[0], empty_json[2]) == (200, b"{}")
    assert packed == unknown == (200, PROTOBUF, b"")
    for answer in (deep, deeper):
        assert answer[0] == 200
    partial = ExportTraceServiceResponse.FromString(deeper[2]).partial_success
    assert isinstance(partial, ExportTracePartialSuccess)
    assert partial.rejected_spans == 1
    assert "cannot be decoded" in partial.error_message


def test_nobody_sends_without_the_token(tmp_path: Path) -> None:
    async def scenario() -> list[int]:
        async with served(tmp_path) as site:
            wrong = {"Authorization": "Bearer wrong"}
            return [(await post(site, WHOLE, **headers))[0] for headers in ({}, wrong)]

    assert asyncio.run(scenario()) == [200, 401]


def test_a_sender_that_goes_away_harms_nobody(tmp_path: Path) -> None:
    async def scenario() -> int:
        async with served(tmp_path) as site:
            _, writer = await asyncio.open_connection("127.0.0.1", site.port)
            head = f"POST /v1/traces HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
            rest = f"Content-Type: {PROTOBUF}\r\nContent-Length: 1000\r\n\r\nabc"
            writer.write((head + rest).encode())
            await writer.drain()
            writer.close()
            await writer.wait_closed()
            return (await post(site, good(1)))[0]

    assert asyncio.run(scenario()) == 200
