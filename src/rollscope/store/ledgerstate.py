"""What the ledger of a process remembers, as it is stored with the segments."""

import msgspec

from rollscope.model.batch import ProcessHeader
from rollscope.model.clockline import ClockLine
from rollscope.store.openspan import OpenSpan
from rollscope.store.overlap import Carried

__all__ = ["LedgerState"]


class LedgerState(msgspec.Struct, kw_only=True):
    """What a ledger remembers, as it is stored."""

    process: bytes
    header: ProcessHeader | None = None
    numbers: list[list[int]] = []
    lines: list[ClockLine] = []
    open: list[OpenSpan] = []
    carried: Carried = {}
    ended_parents: dict[int, tuple[int, int, str]] = {}
    """Start, end and path of spans that ended before a child of theirs did."""
    ended_sessions: dict[int, tuple[int, int, str]] = {}
    """The same of the latest sessions: something of theirs may still start."""
    first_seen_ns: int = 0
    last_seen_ns: int = 0
    jumped_ns: int = 0
    end: str | None = None
    drops: dict[str, int] = {}
    silences: list[tuple[int, int]] = []
    spans: int = 0
    lost: int = 0
    """Spans whose end was never recorded though their process went on."""
    given_up: list[int] = []
    """The latest of those."""
    lowest_id: int = 0
    highest_id: int = 0
