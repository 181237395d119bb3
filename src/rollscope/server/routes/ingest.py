"""Native ingest: `POST /v1/ingest` takes the frames of one process, `GET` says who listens."""

import re
import time
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import unquote

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rollscope._version import __version__
from rollscope.collect.collector import Collector
from rollscope.collect.exchange import Exchange, parse_exchange
from rollscope.collect.keeping import Kept
from rollscope.errors import IngestError
from rollscope.model.undecodable import UNDECODABLE
from rollscope.server.bodyreading import RawBody, discard, reading
from rollscope.server.failures import Failure

__all__ = ["ROUTES", "IngestAnswer", "IngestListener", "collector_of"]

_MEDIA_TYPE: Final = "application/x-rollscope-frames"
_PROCESS: Final = re.compile(r"[0-9a-f]{16}")
_MOST_TAGS: Final = 64
_TAG_CHARACTERS: Final = 1024


class IngestAnswer(msgspec.Struct):
    """What a sender is told."""

    received_ns: int
    sent_ns: int
    frames: int
    doubled: int


class IngestListener(msgspec.Struct):
    """Who listens."""

    rollscope: str
    run: str | None
    """The only run that is taken."""


class _Sending(NamedTuple):
    """What the headers of a request say."""

    run: str
    process: bytes
    tags: dict[str, str]
    exchange: Exchange | None


def collector_of(request: Request) -> Collector:
    """Give what receives."""
    collector: Collector = request.app.state.collector
    return collector


async def _listener(request: Request) -> Response:
    return _json(IngestListener(__version__, collector_of(request).only_run))


async def _ingest(request: Request) -> Response:
    received_ns = time.time_ns()
    collector = collector_of(request)
    try:
        collector.check_open()
        sending = _read_headers(request)
    except (Failure, IngestError):
        await discard(request.receive)
        raise
    async with reading(request, collector) as raw:
        work = partial(_keep, collector, sending, raw, received_ns)
        kept = await collector.do(0, work)  # room is reserved already
    return _json(IngestAnswer(received_ns, time.time_ns(), kept.frames, kept.doubled))


def _keep(collector: Collector, sending: _Sending, raw: RawBody, received_ns: int) -> Kept:
    return collector.keep(
        sending.run,
        sending.tags,
        sending.process,
        raw.inflate(),
        exchange=sending.exchange,
        received_ns=received_ns,
    )


def _read_headers(request: Request) -> _Sending:
    headers = request.headers
    if headers.get("content-type", "").partition(";")[0].strip().lower() != _MEDIA_TYPE:
        raise Failure(415, "This address takes frames only.", f"Send them as {_MEDIA_TYPE}.")
    process = headers.get("rollscope-process", "")
    if not _PROCESS.fullmatch(process):
        raise Failure(400, "Rollscope-Process has to be 16 hexadecimal digits.", _WHERE)
    clock = headers.get("rollscope-clock")
    return _Sending(
        headers.get("rollscope-run", ""),
        bytes.fromhex(process),
        _read_tags(headers.get("rollscope-tags", "")),
        None if clock is None else parse_exchange(clock),
    )


_WHERE: Final = "docs/wire.md says what a request looks like."


def _read_tags(text: str) -> dict[str, str]:
    if not text:
        return {}
    try:
        tags = msgspec.json.decode(unquote(text), type=dict[str, str])
    except (*UNDECODABLE, UnicodeError):
        raise Failure(400, "Rollscope-Tags has to be a JSON object of texts.", _WHERE) from None
    if len(tags) > _MOST_TAGS or any(len(k) + len(v) > _TAG_CHARACTERS for k, v in tags.items()):
        raise Failure(400, f"A run has at most {_MOST_TAGS} short tags.", "Give fewer.")
    return tags


def _json(answer: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")


ROUTES: Final = (
    Route("/v1/ingest", _listener, methods=["GET"]),
    Route("/v1/ingest", _ingest, methods=["POST"]),
)
