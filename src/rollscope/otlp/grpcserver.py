"""OTLP over gRPC, for senders that speak nothing else; needs the extra `[grpc]`."""

import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from rollscope.errors import IngestError, MissingExtra
from rollscope.otlp.answering import Signal
from rollscope.otlp.forms import OtlpError

__all__ = ["DEFAULT_GRPC_PORT", "serving_grpc"]

DEFAULT_GRPC_PORT: Final = 4317
_MOST_BYTES: Final = 16 * 1024 * 1024
"""Of one message; four times what gRPC allows unless told otherwise."""
_MOST_AT_ONCE: Final = 32
_GRACE_S: Final = 1.0
_SERVICES: Final = {
    f"opentelemetry.proto.collector.{package}.v1.{name}Service": signal
    for package, name, signal in (
        ("trace", "Trace", Signal.TRACES),
        ("metrics", "Metrics", Signal.METRICS),
        ("logs", "Logs", Signal.LOGS),
    )
}

Take = Callable[[Signal, bytes], Awaitable[bytes]]


@asynccontextmanager
async def serving_grpc(
    take: Take,
    *,
    host: str,
    port: int,
    token: str | None,
    certificate: tuple[bytes, bytes] | None = None,
) -> AsyncIterator[int]:
    """Serve while the block runs; gives the port, another one if the wanted one is taken.

    Args:
        take: Takes a request, and gives the answer.
        host: The address to listen on.
        port: The port to listen on; 0 for any.
        token: What senders have to show, as the metadata `authorization: Bearer TOKEN`.
        certificate: Key and certificate chain, for TLS.

    Raises:
        MissingExtra: gRPC is not installed.
    """
    try:
        import grpc  # type: ignore[import-untyped]
        import grpc.aio  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtra(
            "OTLP over gRPC needs grpcio; install it with: pip install 'rollscope[grpc]'"
        ) from error
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", _MOST_BYTES),
            # Another server's port is not ours to share.
            ("grpc.so_reuseport", 0),
        ],
        maximum_concurrent_rpcs=_MOST_AT_ONCE,
    )
    handlers = [_handler(grpc, name, signal, take, token) for name, signal in _SERVICES.items()]
    server.add_generic_rpc_handlers(tuple(handlers))
    credentials = None if certificate is None else grpc.ssl_server_credentials([certificate])
    bound = _bind(server, host, port, credentials)
    await server.start()
    try:
        yield bound
    finally:
        await server.stop(_GRACE_S)


def _bind(server: Any, host: str, port: int, credentials: Any) -> int:  # noqa: ANN401
    shown = f"[{host}]" if ":" in host else host
    for wanted in (port, 0):
        address = f"{shown}:{wanted}"
        try:
            if credentials is None:
                bound: int = server.add_insecure_port(address)
            else:
                bound = server.add_secure_port(address, credentials)
        except RuntimeError:  # taken
            if wanted == 0:
                raise
            continue
        if bound:
            return bound
    raise RuntimeError(f"no port of {host} can be had")


def _handler(
    grpc: Any,  # noqa: ANN401  (loaded only when asked for)
    service: str,
    signal: Signal,
    take: Take,
    token: str | None,
) -> Any:  # noqa: ANN401
    async def export(body: bytes, context: Any) -> bytes:  # noqa: ANN401
        if not _is_welcome(context.invocation_metadata(), token):
            await context.abort(
                grpc.StatusCode.UNAUTHENTICATED,
                "The token is missing or wrong; send the metadata authorization: Bearer TOKEN.",
            )
        try:
            return await take(signal, body)
        except OtlpError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except IngestError as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        raise AssertionError  # abort raises

    # Without functions to serialise, bytes are handed through as they are.
    method = grpc.unary_unary_rpc_method_handler(export)
    return grpc.method_handlers_generic_handler(service, {"Export": method})


def _is_welcome(metadata: Any, token: str | None) -> bool:  # noqa: ANN401
    if token is None:
        return True
    given = [value for key, value in metadata or () if key.lower() == "authorization"]
    shown = given[0] if given and isinstance(given[0], str) else ""
    kind, _, value = shown.partition(" ")
    is_same = hmac.compare_digest(value.strip().encode(), token.encode())
    return kind.lower() == "bearer" and is_same
