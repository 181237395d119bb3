"""The fields of an AReaL session record that need more than a copy."""

from typing import Any, Final, NamedTuple

from rollscope.importing.values import seconds_to_ns

__all__ = ["Names", "Phases", "read_phases"]

_KNOWN: Final = frozenset(
    (
        *("task_id", "session_id", "request_id", "rank", "role"),
        *("submit_ts", "finalized_ts", "phases", "counters"),
    )
)
_PLAIN: Final = frozenset(("queue_wait_s", "runner_wait_s", "execution_s", "post_wait_s"))
_MOST_NAMES: Final = 1000


class Names(dict[str, str]):
    """What the other fields of a record are called as attributes; empty for those of our own."""

    def __missing__(self, key: str) -> str:
        name = key
        if key in _KNOWN:
            name = ""
        elif key == "reward_calc_s":
            name = "source_reward_s"
        elif key in ("status", "reason") or (key.endswith("_s") and key not in _PLAIN):
            name = f"source_{key}"
        if len(self) < _MOST_NAMES:
            self[key] = name
        return name


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
    has_open = False
    for name, calls in value.items():
        before = len(entries)
        for call in calls if isinstance(calls, list) else ():
            start = seconds_to_ns(call.get("start_ts")) if isinstance(call, dict) else None
            if start is None or start <= 0:
                continue
            end = seconds_to_ns(call.get("end_ts"))
            if end is None or end <= 0:
                end, has_open = 0, True
            elif end > last:
                last = end
            if start > latest:
                latest = start
            entries.append((name, start, end, False))
        if has_open and len(entries) - before > 1:
            _mark_mixed_up(entries, before)
    is_mixed_up = has_open and any(entry[3] for entry in entries)
    return Phases(entries, last, latest if latest > last else last, has_open, is_mixed_up)


def _mark_mixed_up(entries: list[tuple[str, int, int, bool]], first: int) -> None:
    """Find calls that lost their ends to later ones, which then had none left for themselves."""
    has_empty = False
    for place in range(len(entries) - 1, first - 1, -1):
        name, start, end, _ = entries[place]
        if end == 0 and has_empty:
            entries[place] = (name, start, end, True)
        has_empty |= end == start
