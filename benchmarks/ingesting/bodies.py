"""Requests that are made before anything is timed: native frames, and OTLP spans."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from rollscope.collect.frameheads import FrameHead
from rollscope.model.batch import decode_batch, encode_batch
from rollscope.model.frames import pack_frame, scan_frames
from rollscope.testing.generate import generate_run
from rollscope.testing.shape import RunShape

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opentelemetry.proto.trace.v1.trace_pb2 import Span

__all__ = ["Native", "NativeBody", "make_native", "make_otlp"]

_BODY_BYTES: Final = 1024 * 1024
"""As the HTTP sink gathers."""
_MONTH_S: Final = 30 * 86_400.0
_CHILDREN: Final = 7
"""Of one session in what OTLP senders send."""
_head_of = msgspec.msgpack.Decoder(FrameHead).decode


class NativeBody(NamedTuple):
    """Frames of one process."""

    process: bytes
    data: bytes


class Native(NamedTuple):
    """A generated run, as its processes would send it."""

    bodies: list[NativeBody]
    """In the order of time, as far as processes send at once."""
    spans: int

    @property
    def size(self) -> int:
        """Bytes of all bodies."""
        return sum(len(body.data) for body in self.bodies)


def make_native(folder: Path, spans: int, *, is_alive: bool = False) -> Native:
    """Generate a run that ends now, and cut it into requests.

    Args:
        folder: Where to.
        spans: About how many.
        is_alive: Whether its processes count as alive all the time. Else those that send hours of a
            run within seconds look dead while they do, and what is open looks lost.
    """
    truth = generate_run(folder / "source", RunShape.sized(spans), ends_now=True)
    logs = [
        list(_bodies_of(log, is_alive=is_alive))
        for log in sorted((folder / "source" / "log").glob("*.rsl"))
    ]
    longest = max(map(len, logs))
    in_turn = [log[at] for at in range(longest) for log in logs if at < len(log)]
    return Native(in_turn, truth.total_spans)


def _bodies_of(log: Path, *, is_alive: bool) -> Iterator[NativeBody]:
    frames = scan_frames(log.read_bytes()).bodies
    process = _head_of(frames[0]).process
    if is_alive:
        frames = [_beating_seldom(frame) for frame in frames]
    gathered = b""
    for frame in map(pack_frame, frames):
        if gathered and len(gathered) + len(frame) > _BODY_BYTES:
            yield NativeBody(process, gathered)
            gathered = b""
        gathered += frame
    yield NativeBody(process, gathered)


def _beating_seldom(frame: bytes) -> bytes:
    """Let a process say that it is heard of once in a month, where it says who it is."""
    batch = decode_batch(frame)
    if batch.header is None:
        return frame
    batch.header.heartbeat_s = _MONTH_S
    return encode_batch(batch)


def make_otlp(requests: int, spans: int) -> list[bytes]:
    """Make requests of so many spans each: sessions of agents, with what they say of tokens."""
    return [_otlp_request(spans) for _ in range(requests)]


def _otlp_request(spans: int) -> bytes:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    for key, value in (("service.name", "agents"), ("host.name", "box-7")):
        resource.resource.attributes.add(key=key).value.string_value = value
    scope = resource.scope_spans.add()
    scope.scope.name = "solver"
    now_ns = time.time_ns()
    trace, root = b"", b""
    for number in range(spans):
        place = number % (_CHILDREN + 1)
        span = scope.spans.add(span_id=os.urandom(8))
        if place == 0:
            trace, root = os.urandom(16), span.span_id
        else:
            span.parent_span_id = root
        span.trace_id = trace
        span.start_time_unix_nano = now_ns + number * 1000
        span.end_time_unix_nano = span.start_time_unix_nano + 1_000_000
        _fill(span, place)
    return request.SerializeToString()


def _fill(span: Span, place: int) -> None:
    span.name = "invoke_agent solver" if place == 0 else "chat policy"
    span.kind = 1 if place == 0 else 3
    operation = "invoke_agent" if place == 0 else "chat"
    span.attributes.add(key="gen_ai.operation.name").value.string_value = operation
    span.attributes.add(key="gen_ai.request.model").value.string_value = "policy"
    span.attributes.add(key="gen_ai.usage.input_tokens").value.int_value = 900 + place
    span.attributes.add(key="gen_ai.usage.output_tokens").value.int_value = 41 * place
    span.attributes.add(key="server.address").value.string_value = "10.0.0.7"
