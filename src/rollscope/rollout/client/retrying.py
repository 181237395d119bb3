"""When to try again: pure rules, with neither clock nor network of their own."""

import math
import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec

__all__ = ["RetryRule", "read_retry_after"]


class RetryRule(msgspec.Struct, frozen=True, kw_only=True):
    """How often to try again, and after how long."""

    max_retries: int = 5
    base_s: float = 0.5
    """The longest wait before the second try; it doubles with each."""
    cap_s: float = 30.0
    retry_after_cap_s: float = 120.0
    """The longest wait that a server may ask for; if it asks for more, this is waited."""

    def wait_s(self, tries: int, retry_after_s: float | None, rng: random.Random) -> float:
        """Say how long to wait after some number of tries that failed.

        Anything from nothing to the limit, so that many who failed together do not come back
        together; a wait that the server asked for comes on top.
        """
        limit = min(self.cap_s, self.base_s * 2.0 ** min(tries - 1, 60))
        asked = min(retry_after_s or 0.0, self.retry_after_cap_s)
        return asked + rng.uniform(0.0, limit)


def read_retry_after(text: str | None, now: datetime | None = None) -> float | None:
    """Read a Retry-After header: seconds, or a date; None if it says nothing useful.

    Args:
        text: The header's value.
        now: What a date is compared with; the present if not given.
    """
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = _seconds_until(text, now or datetime.now(UTC))
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _seconds_until(text: str, now: datetime) -> float:
    try:
        date = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return math.nan
    if date.tzinfo is None:  # "-0000", which means UTC of an unknown zone
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - now).total_seconds())
