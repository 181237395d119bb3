from __future__ import annotations

import asyncio
import concurrent.futures

import pytest

from rollscope.instrument.endings import classify
from rollscope.model.kinds import STATUS_OF_CODE


class Cancelled(BaseException):
    """Called as trio's is."""


class ToolTimeout(TimeoutError):
    """A timeout of the host's own."""


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Outer:
    class InnerError(Exception):
        pass


@pytest.mark.parametrize(
    ("error", "status", "reason", "outcome"),
    [
        (ValueError("bad"), "error", "ValueError: bad", "failed"),
        (ValueError(), "error", "ValueError", "failed"),
        (KeyError("k"), "error", "KeyError: 'k'", "failed"),
        (Outer.InnerError("x"), "error", "Outer.InnerError: x", "failed"),
        (MemoryError(), "error", "MemoryError", "failed"),
        (TimeoutError("late"), "error", "TimeoutError: late", "timeout"),
        (ToolTimeout(), "error", "ToolTimeout", "timeout"),
        (concurrent.futures.TimeoutError(), "error", "TimeoutError", "timeout"),
        (asyncio.CancelledError(), "cancelled", "CancelledError", "cancelled"),
        (asyncio.CancelledError("stop"), "cancelled", "CancelledError: stop", "cancelled"),
        (concurrent.futures.CancelledError(), "cancelled", "CancelledError", "cancelled"),
        (Cancelled(), "cancelled", "Cancelled", "cancelled"),
        (KeyboardInterrupt(), "cancelled", "KeyboardInterrupt", "cancelled"),
        (SystemExit(2), "error", "SystemExit: 2", "failed"),
        (SystemExit("message"), "error", "SystemExit: message", "failed"),
        (SystemExit(0), "ok", None, None),
        (SystemExit(), "ok", None, None),
        (GeneratorExit(), "ok", None, None),
        (Speechless(), "error", "Speechless: (its text cannot be had)", "failed"),
        (ExceptionGroup("several", [ValueError()]), "error", None, "failed"),
    ],
    ids=repr,
)
def test_an_exception_decides_status_reason_and_outcome(
    error: BaseException, status: str, reason: str | None, outcome: str | None
) -> None:
    ending = classify(error)
    assert STATUS_OF_CODE[ending.status] == status
    assert ending.outcome == outcome
    if isinstance(error, ExceptionGroup):
        assert str(ending.reason).startswith("ExceptionGroup: several")
    else:
        assert ending.reason == reason


def test_a_long_reason_is_cut() -> None:
    reason = classify(ValueError("x" * 10_000_000)).reason
    assert reason is not None
    assert len(reason) == 500
    assert reason.startswith("ValueError: xxx")
