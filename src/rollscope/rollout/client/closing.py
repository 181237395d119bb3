"""What holds connections and lets go of them at the end of an `async with`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

    from rollscope.rollout.client.transport import Transport

__all__ = ["Closing"]


class Closing:
    """Closes its connections."""

    _transport: Transport

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
