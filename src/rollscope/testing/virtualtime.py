"""An event loop on which time passes only when nothing else can happen, and then at once.

Hours of timeouts and back-offs are tested in milliseconds, and the same in every run. Use it for
coroutines that wait for each other and for timers, not for threads or sockets.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

__all__ = ["VirtualDeadlock", "VirtualTimeLoop", "run_virtual"]

T = TypeVar("T")

_BEGIN_NS: Final = 1_000_000_000
"""Not 0, which is easily taken for "no time"."""


class VirtualDeadlock(RuntimeError):
    """Everything waits, and nothing is due at any time."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop with a clock of its own; `time` and `clock_ns` are the same clock."""

    def __init__(self) -> None:
        """Begin with no time gone by."""
        self._now_ns = _BEGIN_NS
        super().__init__(_Skipping(self.advance))
        self._clock_resolution = 1e-9  # of the clock below, not of the machine's

    def time(self) -> float:
        """Give the time in seconds."""
        return self._now_ns / 1e9

    def clock_ns(self) -> int:
        """Give the time in nanoseconds, as a `Runner` wants its clock."""
        return self._now_ns

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now_ns += max(1, math.ceil(seconds * 1e9))


def run_virtual(
    main: Callable[[VirtualTimeLoop], Coroutine[Any, Any, T]],
    make_loop: Callable[[], VirtualTimeLoop] = VirtualTimeLoop,
) -> T:
    """Run a coroutine on such a loop to its end.

    Args:
        main: Given the loop, makes the coroutine.
        make_loop: Makes the loop.

    Raises:
        VirtualDeadlock: The coroutine waits for something that can never happen.
    """
    with asyncio.Runner(loop_factory=make_loop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, VirtualTimeLoop)  # noqa: S101  (it was made by `make_loop`)
        return runner.run(main(loop))


class _Skipping(selectors.BaseSelector):
    """Watches files as the usual selector does, but skips the time that it would sleep."""

    def __init__(self, advance: Callable[[float], None]) -> None:
        self._advance = advance
        self._inner = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._inner.select(0)
        if not ready and timeout is None:
            raise VirtualDeadlock("everything waits, and nothing is due at any time")
        if not ready and timeout is not None and timeout > 0:
            self._advance(timeout)
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:  # noqa: ANN401
        return self._inner.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:  # noqa: ANN401
        return self._inner.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._inner.get_map()

    def close(self) -> None:
        self._inner.close()
