"""How an exception that leaves a span is read: its status, its reason, the session's outcome."""

from typing import NamedTuple

from rollscope.model.kinds import STATUS_CODES, Outcome, Status

__all__ = ["Ending", "classify"]

_REASON_CHARS = 500


class Ending(NamedTuple):
    """What an exception makes of the span it leaves."""

    status: int
    reason: str | None
    outcome: Outcome | None


_OK = Ending(STATUS_CODES[Status.OK], None, None)


def classify(error: BaseException) -> Ending:
    """Say how a span ended that `error` leaves.

    Cancellation is found by class name, so that asyncio, concurrent.futures and trio all count and
    none is imported. A closed generator and `sys.exit(0)` are ordinary ends.
    """
    if isinstance(error, GeneratorExit):
        return _OK
    if isinstance(error, SystemExit) and error.code in (None, 0):
        return _OK
    if isinstance(error, KeyboardInterrupt) or _is_cancellation(error):
        return Ending(STATUS_CODES[Status.CANCELLED], _describe(error), Outcome.CANCELLED)
    outcome = Outcome.TIMEOUT if isinstance(error, TimeoutError) else Outcome.FAILED
    return Ending(STATUS_CODES[Status.ERROR], _describe(error), outcome)


def _is_cancellation(error: BaseException) -> bool:
    return any(base.__name__ in ("CancelledError", "Cancelled") for base in type(error).__mro__)


def _describe(error: BaseException) -> str:
    name = type(error).__qualname__
    try:
        text = str(error)[:_REASON_CHARS]  # before it is put together: it may be long
    except Exception:  # the exception's own __str__ is the host's code and may fail
        text = "(its text cannot be had)"
    return (f"{name}: {text}" if text else name)[:_REASON_CHARS]
