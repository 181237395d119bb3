"""Rows from our own Chrome export: what was a session, a step or a phase is one again."""

from typing import Any, Final

from rollscope.importing.chrome_events import ChromeEvent
from rollscope.importing.chrome_tracks import Track
from rollscope.importing.values import stable_bytes
from rollscope.instrument.sanitise import clean_text
from rollscope.model.kinds import EVENT_CODE, KIND_CODES, SPAN_CODES, STATUS_CODES, Kind, Status
from rollscope.model.scope import ScopeRow
from rollscope.otlp.aliases import first_number, whole_number
from rollscope.otlp.rows import Row, fit_attrs
from rollscope.store.attributes import PROMOTED, family_of

__all__ = ["facts_of_session", "hex_number", "own_row"]

_OK: Final = STATUS_CODES[Status.OK]
_OPEN: Final = STATUS_CODES[Status.OPEN]
_SESSION: Final = KIND_CODES[Kind.SESSION]
_CODES: Final[dict[str, int]] = {
    "event": EVENT_CODE,
    **{str(kind): code for kind, code in KIND_CODES.items()},
    **{f"{Kind.SPAN},{category}": code for category, code in SPAN_CODES.items()},
}
_STATUSES: Final = {str(status): code for status, code in STATUS_CODES.items()}
_TEXTS: Final = ("lane", "reason", "outcome")
_NUMBERS: Final = ("version_start", "version_end")
_LATE: Final = frozenset(("reward", "consumed_step"))
_PLACES: Final = frozenset(
    (
        *("span_id", "parent_id", "session_id", "trace_id", "process"),
        *("step", "task_key", "sample", "group"),
        *("status", "open", "clock_suspect", "recorded_end_ns", "consumed_ns"),
        *(*_TEXTS, *_NUMBERS, *_LATE),
    )
)
"""What is no attribute."""
_PREFIX: Final = "attr."


def hex_number(value: object) -> int | None:
    """Read an id; None if it is none."""
    if not isinstance(value, str) or not 0 < len(value) <= 16:
        return None
    try:
        return int(value, 16) or None
    except ValueError:
        return None


def own_row(track: Track, event: ChromeEvent, end_ns: int | None) -> Row | None:
    """Make the row of a span or an event that we exported; None if it is none of ours.

    Args:
        track: Where it stands.
        event: What tells of it.
        end_ns: When it ended; None if it did not.
    """
    args = event.args
    span_id, what = hex_number(args.get("span_id")), _CODES.get(event.category)
    if span_id is None or what is None:
        return None
    suspect = whole_number(args.get("recorded_end_ns"))
    if suspect is not None and end_ns is not None and 0 < suspect < 2**62:
        end_ns = max(suspect - track.domain.shift_ns, 1 - track.domain.shift_ns)
    status = _STATUSES.get(str(args.get("status")), _OK)
    fields: dict[str, Any] = {
        name: clean_text(args[name], 4096) for name in _TEXTS if isinstance(args.get(name), str)
    }
    for name in _NUMBERS:
        number = whole_number(args.get(name))
        if number is not None and what != EVENT_CODE:
            fields[name] = number
    return Row(
        what,
        _OPEN if end_ns is None else status,
        event.name or "unnamed",
        _scope(args, track),
        span_id,
        hex_number(args.get("parent_id")) or 0,
        event.start_ns or 0,
        end_ns or 0,
        fit_attrs(_attrs(args, is_event=what == EVENT_CODE)),
        fields if what != EVENT_CODE else {},
    )


def facts_of_session(row: Row, args: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Give what became known of a session late, and when; nothing for other spans."""
    facts: dict[str, Any] = {}
    if row.what == _SESSION:
        consumed, reward = whole_number(args.get("consumed_step")), first_number(args.get("reward"))
        if consumed is not None:
            facts["consumed_step"] = consumed
        if reward is not None and f"{_PREFIX}reward" not in args:
            facts["reward"] = float(reward)
    return whole_number(args.get("consumed_ns")) or 0, facts


def _scope(args: dict[str, Any], track: Track) -> ScopeRow:
    task_key, group = args.get("task_key"), args.get("group")
    step, sample = whole_number(args.get("step")), whole_number(args.get("sample"))
    trace_id = args.get("trace_id")
    try:
        trace = bytes.fromhex(trace_id) if isinstance(trace_id, str) else b""
    except ValueError:
        trace = b""
    if len(trace) != 16:
        trace = stable_bytes(16, track.domain.name, step, task_key, group)
    return (
        trace,
        step,
        clean_text(task_key, 1024) if isinstance(task_key, str) else None,
        clean_text(group, 1024) if isinstance(group, str) else None,
        hex_number(args.get("session_id")),
        sample,
    )


def _attrs(args: dict[str, Any], *, is_event: bool) -> dict[str, Any]:
    """Give the attributes: columns that were made from others are made again."""
    attrs: dict[str, Any] = {}
    for name, value in args.items():
        if name.startswith(_PREFIX):
            attrs[name.removeprefix(_PREFIX)] = value
        elif name not in _PLACES and (is_event or not _is_derived(name, value, args)):
            attrs[name] = value
    return attrs


def _is_derived(name: str, value: object, args: dict[str, Any]) -> bool:
    if name == "family" and value == family_of(str(args.get("task_key"))):
        return True
    if f"{_PREFIX}{name}" in args:
        return True
    sources = PROMOTED[name][0] if name in PROMOTED else ()
    return any(source != name and source in args for source in sources)
