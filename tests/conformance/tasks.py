"""What the tasks of the suite do; found by name in other processes too."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from rollscope.runner import Reason, Status, Verdict, ctx

_POLL_S = 0.002


def _send(path: str, text: str = "") -> None:
    Path(path).write_text(text)


def _is_sent(path: str) -> bool:
    return Path(path).exists()


async def _until(path: str) -> None:
    while not _is_sent(path):  # noqa: ASYNC110  (it is sent by another process)
        await asyncio.sleep(_POLL_S)


async def give(value: Any = None) -> Any:
    return value


async def give_back(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    return args, kwargs


async def give_after(delay_s: float, value: Any = None) -> Any:
    await asyncio.sleep(delay_s)
    return value


async def fail(text: str = "no good") -> None:
    raise ValueError(text)


async def fail_before_it_awaits(path: str) -> None:
    _send(path)
    raise OSError("at once")


async def raise_system_exit(code: int) -> None:
    sys.exit(code)


async def raise_keyboard_interrupt() -> None:
    raise KeyboardInterrupt


async def exit_in_child(code: int) -> None:
    await asyncio.gather(raise_system_exit(code))


async def cancel_itself() -> None:
    raise asyncio.CancelledError


def not_async(value: Any) -> Any:
    return value


async def hold(started: str, release: str, value: Any = None) -> Any:
    """Say that it runs, then wait until it is let go."""
    _send(started)
    await _until(release)
    return value


async def hold_with_checkpoint(started: str, release: str, state: Any) -> Any:
    ctx.checkpoint(state)
    _send(f"{started}{ctx.attempt}")
    await _until(release)
    return ctx.partial


async def tell_cancel(started: str, told: str) -> None:
    """Wait for ever, and write down what a cancel says."""
    _send(started)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError as error:
        _send(told, str(error.args[0] if error.args else ""))
        raise


async def return_when_cancelled(started: str, value: Any) -> Any:
    _send(started)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return value


async def swallow_cancels(started: str, release: str) -> str:
    """Go on whatever is asked, until let go."""
    _send(started)
    while not _is_sent(release):
        try:
            await asyncio.sleep(_POLL_S)
        except asyncio.CancelledError:
            continue
    return "too late"


async def abort_on_server(started: str, aborted: str) -> None:
    async def abort() -> None:
        await asyncio.sleep(0)
        _send(aborted)

    ctx.on_cancel(abort)
    _send(started)
    await asyncio.Event().wait()


async def fail_with_bad_hook(started: str) -> None:
    async def hook() -> None:
        raise asyncio.CancelledError

    ctx.on_cancel(hook)
    _send(started)
    await asyncio.Event().wait()


async def fail_until(attempt: int) -> int:
    if (ctx.attempt or 0) < attempt:
        raise ConnectionError(f"attempt {ctx.attempt}")
    return ctx.attempt or 0


async def _linger(ended: str, cleanup_s: float) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(cleanup_s)
        _send(ended)


_children: set[asyncio.Task[Any]] = set()


def _hold(child: asyncio.Task[Any]) -> None:
    """Keep a task alive: asyncio itself holds tasks weakly."""
    _children.add(child)
    child.add_done_callback(_children.discard)


async def leave_child(ended: str, fate: str, cleanup_s: float = 0.0) -> str:
    """Start an asyncio task, and return or fail while it runs."""
    child = asyncio.get_running_loop().create_task(_linger(ended, cleanup_s))
    _hold(child)
    await asyncio.sleep(0)
    if fate == "fail":
        raise ValueError("with a child")
    if fate == "wait":
        _send(f"{ended}.started")
        await child
    return "left it"


async def leave_stuck_child(release: str) -> None:
    child = asyncio.get_running_loop().create_task(swallow_cancels(f"{release}.started", release))
    _hold(child)
    await asyncio.sleep(0)
    if child is not None:
        raise ValueError("with a child that does not end")


async def stop_at_pause_points(started: str, release: str, value: Any) -> Any:
    _send(started)
    while not _is_sent(release):
        await asyncio.sleep(_POLL_S)
        await ctx.pause_point()
    return value


async def tell_context() -> dict[str, Any]:
    return {
        "id": ctx.id,
        "attempt": ctx.attempt,
        "version": ctx.version,
        "tags": dict(ctx.tags),
        "has_deadline": ctx.deadline is not None,
    }


async def progress_for(looks: int, delay_s: float) -> str:
    for _ in range(looks):
        await asyncio.sleep(delay_s)
        ctx.progress()
    return "got on"


async def reject() -> Verdict:
    return Verdict(Status.REJECTED, Reason.FILTERED, value=3, detail="not good enough")


class Unprintable(Exception):
    """An error whose own code fails."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


async def fail_unprintably() -> None:
    raise Unprintable
