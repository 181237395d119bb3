"""Spans of OpenTelemetry's own SDKs, sent to a real server, down to the rows of the store."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import rotel  # type: ignore[import-untyped]

import rollscope as rs
from tests.integration.served import TOKEN, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROOT = Path(__file__).parents[2]
TLS = ROOT / "tests" / "tls"


async def run_program(*args: str, **env: str) -> str:
    """Run a program of ours, and give what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *args,
        cwd=ROOT,
        env={**os.environ, **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err.decode()
    return out.decode()


def rows_of(run: Path, sql: str) -> list[dict[str, Any]]:
    with rs.open(run) as opened:
        rows: list[dict[str, Any]] = opened.sql(sql).to_pylist()
    return rows


SPANS = """
    SELECT name, kind, lower(hex(trace_id)) AS trace_id, printf('%016x', span_id) AS span_id,
        CASE WHEN parent_id IS NULL THEN NULL ELSE printf('%016x', parent_id) END AS parent_id,
        CASE WHEN session_id IS NULL THEN NULL ELSE printf('%016x', session_id) END AS session_id,
        start_ns, end_ns, status, reason, step, task_key, sample, tokens_out, detail
    FROM spans ORDER BY start_ns, span_id"""


def by_id(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = {row["span_id"]: row for row in rows}
    assert len(found) == len(rows), "a span is there twice"
    return found


@pytest.mark.parametrize("kind", ["protobuf", "json"])
def test_spans_of_the_sdk_arrive_with_their_ids_and_times(tmp_path: Path, kind: str) -> None:
    async def scenario() -> list[dict[str, Any]]:
        async with served(tmp_path) as site:
            sent = await run_program("-m", "tests.integration.otlp_sender", kind, site.url, TOKEN)
        told: list[dict[str, Any]] = json.loads(sent)
        return told

    sent = asyncio.run(scenario())
    assert len(sent) == 3
    rows = by_id(rows_of(tmp_path / "agents", SPANS))
    for span in sent:
        row = rows[span["span_id"]]
        for field in ("trace_id", "start_ns", "end_ns"):
            assert row[field] == span[field], field
        if span["parent_id"]:
            assert row["parent_id"] == span["parent_id"]
    chat, tool = (rows[span["span_id"]] for span in sent[:2])
    assert (chat["kind"], chat["name"], chat["tokens_out"]) == ("phase", "generate", 41)
    assert (tool["kind"], tool["name"], tool["detail"]) == ("phase", "toolcall", "python")
    assert (tool["status"], tool["reason"]) == ("error", "ValueError: no such file")
    assert chat["session_id"] == tool["session_id"] is not None
    sessions = [row for row in rows.values() if row["kind"] == "session"]
    assert [row["span_id"] for row in sessions] == [chat["session_id"]]
    events = rows_of(tmp_path / "agents", "SELECT name, parent_id FROM events")
    assert [(e["name"], f"{e['parent_id']:016x}") for e in events] == [
        ("first token", chat["span_id"])
    ]
    processes = rows_of(tmp_path / "agents", "SELECT host, pid, role FROM processes")
    assert {"host": "box-7", "pid": 4711, "role": "agents"} in processes


def test_spans_that_carry_our_context_join_the_session_that_caused_them(tmp_path: Path) -> None:
    async def scenario() -> list[dict[str, Any]]:
        async with served(tmp_path) as site:
            with (
                rs.Tracer(run="training", dir=tmp_path) as tracer,
                tracer.step(7),
                tracer.task("gsm8k/12"),
                tracer.session(sample=2),
                tracer.phase("generate"),
            ):
                context = {name.upper(): value for name, value in tracer.inject().items()}
                arguments = ("-m", "tests.integration.otlp_sender", "protobuf", site.url, TOKEN)
                sent = await run_program(*arguments, **context)
        told: list[dict[str, Any]] = json.loads(sent)
        return told

    sent = asyncio.run(scenario())
    assert not (tmp_path / "agents").exists()
    rows = by_id(rows_of(tmp_path / "training", SPANS))
    phase = next(row for row in rows.values() if row["name"] == "generate" and row["step"] == 7)
    ours = next(row for row in rows.values() if row["kind"] == "session")
    agent = rows[sent[-1]["span_id"]]
    assert agent["parent_id"] in {row["span_id"] for row in rows.values()}
    for span in sent:
        row = rows[span["span_id"]]
        assert row["trace_id"] == ours["trace_id"]
        for field in ("session_id", "step", "task_key", "sample"):
            assert row[field] == phase[field] is not None
    assert len([row for row in rows.values() if row["kind"] == "session"]) == 1


@asynccontextmanager
async def program(*args: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a program of ours for the length of the block; it ends when its input does."""
    process = await asyncio.create_subprocess_exec(
        *args, cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    try:
        yield process
    finally:
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 30)
        except TimeoutError:
            process.kill()
            await process.wait()


async def first_line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await asyncio.wait_for(process.stdout.readline(), 60)).decode()


def test_spans_arrive_over_grpc_from_those_who_know_the_token(tmp_path: Path) -> None:
    runs, token = tmp_path / "runs", tmp_path / "token"
    runs.mkdir()
    token.write_text(TOKEN)
    token.chmod(0o600)
    options = ("--port", "0", "--grpc-port", "0", "--token-file", str(token))
    server = (sys.executable, "-m", "rollscope", "view", str(runs), *options)

    async def scenario() -> list[dict[str, Any]]:
        async with program(*server) as process:
            while "gRPC" not in (line := await first_line(process)):
                assert line, "the server has gone"
            address = f"127.0.0.1:{grpc_port(line)}"
            arguments = ("-m", "tests.integration.otlp_sender", "grpc", address)
            stranger = await run_program(*arguments, "a-wrong-token")
            assert len(json.loads(stranger)) == 3
            assert not os.listdir(runs)
            sent: list[dict[str, Any]] = json.loads(await run_program(*arguments, TOKEN))
            process.terminate()
        return sent

    sent = asyncio.run(scenario())
    rows = by_id(rows_of(runs / "agents", SPANS))
    for span in sent:
        for field in ("trace_id", "start_ns", "end_ns"):
            assert rows[span["span_id"]][field] == span[field]


def test_spans_arrive_over_grpc_with_tls_from_those_who_trust_the_certificate(
    tmp_path: Path,
) -> None:
    runs, token = tmp_path / "runs", tmp_path / "token"
    runs.mkdir()
    token.write_text(TOKEN)
    token.chmod(0o600)
    options = ("--port", "0", "--grpc-port", "0", "--token-file", str(token))
    secure = ("--certfile", str(TLS / "cert.pem"), "--keyfile", str(TLS / "key.pem"))
    server = (sys.executable, "-m", "rollscope", "view", str(runs), *options, *secure)
    trusting = {"OTEL_EXPORTER_OTLP_CERTIFICATE": str(TLS / "cert.pem")}

    async def scenario() -> list[dict[str, Any]]:
        async with program(*server) as process:
            while "gRPC" not in (line := await first_line(process)):
                assert line, "the server has gone"
            arguments = ("-m", "tests.integration.otlp_sender", "grpc")
            port = grpc_port(line)
            hasty = {"OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
            await run_program(*arguments, f"127.0.0.1:{port}", TOKEN, **hasty)
            await run_program(*arguments, f"https://127.0.0.1:{port}", TOKEN, **hasty)
            assert not os.listdir(runs), "without TLS, or without trust, nothing gets through"
            told = await run_program(*arguments, f"https://127.0.0.1:{port}", TOKEN, **trusting)
            process.terminate()
        sent: list[dict[str, Any]] = json.loads(told)
        return sent

    sent = asyncio.run(scenario())
    rows = by_id(rows_of(runs / "agents", SPANS))
    assert {span["span_id"] for span in sent} <= rows.keys()


def test_spans_of_logfire_are_open_until_they_end(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[str], list[dict[str, Any]]]:
        async with served(tmp_path) as site:
            arguments = (sys.executable, "-m", "tests.integration.otlp_logfire", site.url, TOKEN)
            async with program(*arguments) as process:
                ids = json.loads(await first_line(process))
                early = await asyncio.to_thread(rows_of, tmp_path / "chatty", SPANS)
        return ids, early

    (episode, think), early = asyncio.run(scenario())
    before = by_id(early)
    assert set(before) == {episode, think}
    assert all(row["status"] == "open" and row["end_ns"] is None for row in early)
    assert (before[episode]["kind"], before[think]["parent_id"]) == ("session", episode)
    after = by_id(rows_of(tmp_path / "chatty", SPANS))
    assert set(after) == {episode, think}
    for name, row in after.items():
        assert row["status"] == "ok"
        assert row["end_ns"] > row["start_ns"] == before[name]["start_ns"]
        assert row["session_id"] == episode


def test_a_collector_in_between_passes_spans_on(tmp_path: Path) -> None:
    agent = Path(rotel.__file__).parent / "rotel-agent"

    async def scenario() -> list[dict[str, Any]]:
        async with served(tmp_path) as site:
            ports = [free_port(), free_port()]
            process = await asyncio.create_subprocess_exec(
                str(agent),
                "start",
                f"--otlp-http-endpoint=127.0.0.1:{ports[0]}",
                f"--otlp-grpc-endpoint=127.0.0.1:{ports[1]}",
                "--exporter=otlp",
                f"--otlp-exporter-endpoint={site.url}",
                "--otlp-exporter-protocol=http",
                f"--otlp-exporter-custom-headers=Authorization=Bearer {TOKEN}",
                "--batch-timeout=50ms",
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                await listening(ports[0])
                address = f"http://127.0.0.1:{ports[0]}"
                told = await run_program(
                    "-m", "tests.integration.otlp_sender", "protobuf", address, TOKEN
                )
                sent: list[dict[str, Any]] = json.loads(told)
                process.send_signal(signal.SIGTERM)  # it sends what it holds before it goes
                await asyncio.wait_for(process.wait(), 30)
                return sent
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()

    sent = asyncio.run(scenario())
    rows = by_id(rows_of(tmp_path / "agents", SPANS))
    for span in sent:
        for field in ("trace_id", "start_ns", "end_ns"):
            assert rows[span["span_id"]][field] == span[field]


def grpc_port(line: str) -> int:
    return int(line.strip().rstrip(".").split()[-1])


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


async def listening(port: int) -> None:
    """Wait until somebody listens there."""
    async with asyncio.timeout(30):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                await writer.wait_closed()
                return
