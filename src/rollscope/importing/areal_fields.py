"""The fields of an AReaL session record that need more than a copy."""

from typing import Any, Final, NamedTuple

from rollscope.importing.values import seconds_to_ns

__all__ = ["KNOWN_KEYS", "WAIT_KEYS", "Phases", "read_phases"]

KNOWN_KEYS: Final = frozenset(
    (
        "task_id",
        "session_id",
        "request_id",
        "rank",
        "role",
        "submit_ts",
        "finalized_ts",
        "phases",
        "counters",
    )
)
WAIT_KEYS: Final = frozenset(("queue_wait_s", "runner_wait_s", "execution_s", "post_wait_s"))


class Phases(NamedTuple):
    """The phases of a session."""

    entries: list[tuple[str, int, int, bool]]
    """Name, start, end or 0, and whether it bears the mark of two calls that were mixed up."""
    last_ns: int
    """The latest end; 0 if there is none."""
    latest_ns: int
    """The latest time of any kind."""
    has_open: bool
    is_mixed_up: bool


_NONE: Final = Phases([], 0, 0, False, False)


def read_phases(value: Any) -> Phases:  # noqa: ANN401  (whatever the file holds)
    """Read the phases as they were recorded."""
    if not isinstance(value, dict):
        return _NONE
    entries: list[tuple[str, int, int, bool]] = []
    last = latest = 0
    has_open = is_mixed_up = False
    for name, calls in value.items():
        read = _read_calls(calls) if isinstance(calls, list) else []
        for place, (start, end) in enumerate(read):
            is_open = end == 0
            has_open |= is_open
            # Of two calls at once, the first lost its end to the second, which then had none left.
            is_lost = is_open and any(end == start for start, end in read[place + 1 :])
            is_mixed_up |= is_lost
            entries.append((str(name), start, end, is_lost))
            last, latest = max(last, end), max(latest, start, end)
    return Phases(entries, last, latest, has_open, is_mixed_up)


def _read_calls(calls: list[Any]) -> list[tuple[int, int]]:
    read = []
    for call in calls:
        if isinstance(call, dict):
            start, end = seconds_to_ns(call.get("start_ts")), seconds_to_ns(call.get("end_ts"))
            if start is not None and start > 0:
                read.append((start, end if end is not None and end > 0 else 0))
    return read
