"""OTLP over HTTP: traces, metrics and logs of others, on the paths that OpenTelemetry knows."""

import os
from collections.abc import Awaitable, Callable
from typing import Final
from weakref import WeakKeyDictionary

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rollscope.collect.collector import Collector
from rollscope.config import resolve
from rollscope.errors import SettingError
from rollscope.otlp.answering import Form, Signal, failure
from rollscope.otlp.forms import OtlpError, TooMuch
from rollscope.otlp.receiver import Receiver
from rollscope.server.bodyreading import discard, reading
from rollscope.server.failures import Failure

__all__ = ["ROUTES", "grpc_taker", "receiver_of"]

_UNSUPPORTED: Final = 415


_receivers: WeakKeyDictionary[Collector, Receiver] = WeakKeyDictionary()


def receiver_of(collector: Collector) -> Receiver:
    """Give the one receiver beside a collector; traces come over HTTP and gRPC alike."""
    found = _receivers.get(collector)
    if found is None:
        found = Receiver(collector, only_run=collector.only_run, keeps_content=_keeps_content())
        _receivers[collector] = found
    return found


def grpc_taker(collector: Collector) -> Callable[[Signal, bytes], Awaitable[bytes]]:
    """Give what takes the requests that come over gRPC."""

    async def take(signal: Signal, body: bytes) -> bytes:
        collector.check_open()
        receiver = receiver_of(collector)
        return await collector.do(len(body), lambda: receiver.take(signal, Form.PROTOBUF, body))

    return take


def _keeps_content() -> bool:
    """Say whether what is said to models is to be kept, as a recording program would."""
    try:
        return resolve({}, os.environ).payloads
    except SettingError:
        return False


def _form_of(request: Request) -> Form | None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return Form(kind) if kind in frozenset(Form) else None


async def _take(request: Request) -> Response:
    signal = Signal(request.url.path.rpartition("/")[2])
    form = _form_of(request)
    if form is None:
        await discard(request.receive)
        return Response(
            failure(Form.JSON, f"Send {Form.PROTOBUF} or {Form.JSON}."),
            status_code=_UNSUPPORTED,
            media_type=Form.JSON,
        )
    collector: Collector = request.app.state.collector
    collector.check_open()
    receiver = receiver_of(collector)
    try:
        async with reading(request, collector) as raw:
            said = await collector.do(0, lambda: receiver.take(signal, form, raw.inflate()))
    except (OtlpError, Failure) as error:
        return _refusal(form, error)
    return Response(said, media_type=form)


def _refusal(form: Form, error: OtlpError | Failure) -> Response:
    """Tell why a body was not taken, as a status in the form in which it came."""
    if isinstance(error, Failure):
        status, headers = error.status, error.headers
    else:
        status, headers = (413 if isinstance(error, TooMuch) else 400), {}
    return Response(failure(form, str(error)), status_code=status, headers=headers, media_type=form)


ROUTES: Final = tuple(
    Route(f"/v1/{signal}", _take, methods=["POST"], name=f"otlp-{signal}") for signal in Signal
)
