"""Streamed answers: they pass on every piece, and the phase ends with the last one.

A stream stands in for the one of the package: it answers to every name of that one, and
`isinstance` takes it for that one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

    from rollscope.integrations.openai.calls import Call

__all__ = ["AsyncPieces", "Pieces", "stand_in"]


class _StandIn:
    """What both kinds share."""

    __slots__ = ("__weakref__", "_call", "_stream")

    def __init__(self, stream: Any, call: Call) -> None:  # noqa: ANN401  (of the package)
        self._stream, self._call = stream, call

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._stream, name)

    @property  # type: ignore[misc]  # a lie for `isinstance`, which `type` sees through
    def __class__(self) -> type:
        return type(self._stream)

    def __del__(self) -> None:
        """End the phase of a stream that nobody reads on, and nobody has closed."""
        with suppress(Exception):  # the interpreter may be half gone
            self._call.end(closed_early=True)


class Pieces(_StandIn):
    """A stream for `for`."""

    __slots__ = ()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:  # noqa: ANN401
        with self._call.working():
            piece = self._stream.__next__()
        self._call.take_piece(piece)
        return piece

    def __enter__(self) -> Self:
        self._stream.__enter__()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> Any:  # noqa: ANN401
        try:
            return self._stream.__exit__(error_type, error, traceback)
        finally:
            self._call.end(closed_early=True)

    def close(self) -> None:
        """Close the stream; its phase ends."""
        try:
            self._stream.close()
        finally:
            self._call.end(closed_early=True)


class AsyncPieces(_StandIn):
    """A stream for `async for`."""

    __slots__ = ()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401
        with self._call.working():
            piece = await self._stream.__anext__()
        self._call.take_piece(piece)
        return piece

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> Any:  # noqa: ANN401
        try:
            return await self._stream.__aexit__(error_type, error, traceback)
        finally:
            self._call.end(closed_early=True)

    async def close(self) -> None:
        """Close the stream; its phase ends."""
        try:
            await self._stream.close()
        finally:
            self._call.end(closed_early=True)


def stand_in(answer: object, call: Call) -> _StandIn | None:
    """Give what stands in for a stream; None if the answer is whole."""
    kind = type(answer)
    if hasattr(kind, "__anext__"):
        return AsyncPieces(answer, call)
    return Pieces(answer, call) if hasattr(kind, "__next__") else None
