"""Our member of the W3C `tracestate` header.

OpenTelemetry hands `tracestate` on from a request to every span made while serving it, and exports
it with the span; baggage it does not export. So an engine that knows nothing of us still sends its
spans with the run and session that caused them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from rollscope.instrument.sanitise import clean_text, read_span_id, read_whole
from rollscope.model.refs import span_hex

if TYPE_CHECKING:
    from rollscope.model.scope import Scope

__all__ = ["StateMember", "format_tracestate", "parse_tracestate"]

_KEY: Final = "rollscope"
_MAX_VALUE: Final = 256
_MAX_TEXT: Final = 512
_MAX_HEADER: Final = 512
_MAX_MEMBERS: Final = 32
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.:/@+\-]*")
_ESCAPED: Final = re.compile(r"%([0-9A-F]{2})")


class StateMember(NamedTuple):
    """What our member says."""

    run: str | None
    step: int | None
    task_key: str | None
    group: str | None
    session_id: int | None
    sample: int | None


def format_tracestate(run: str | None, scope: Scope, others: str = "") -> str:
    """Write the header: our member first, as the one that changed last, then those of others.

    Args:
        run: The name of the run.
        scope: What the span belongs to.
        others: The header as it was before.
    """
    value = _own_value(run, scope)
    if not others:
        return f"{_KEY}={value}" if value else ""
    members = [f"{_KEY}={value}"] if value else []
    size = len(value) + len(_KEY) + 1
    for member in others.split(","):
        text = member.strip()
        size += len(text) + 1
        if not text or text.startswith(f"{_KEY}=") or size > _MAX_HEADER:
            continue
        if len(members) < _MAX_MEMBERS and text.isascii() and text.isprintable():
            members.append(text)
    return ",".join(members)


@lru_cache(maxsize=1024)  # a session asks many a time, and always for the same
def _own_value(run: str | None, scope: Scope) -> str:
    values = {
        "r": run,
        "s": None if scope.session_id is None else span_hex(scope.session_id),
        "n": scope.sample,
        "t": scope.step,
        "k": scope.task_key,
        "g": scope.group,
    }
    # A program may call anything its step or task: made to fit as in the log.
    parts = [
        f"{letter}:{_escape(clean_text(value, _MAX_TEXT))}"
        for letter, value in values.items()
        if value is not None
    ]
    value = ""
    for part in parts:
        longer = f"{value};{part}" if value else part
        if len(longer) <= _MAX_VALUE:  # whole parts only: half a key would name another task
            value = longer
    return value


def parse_tracestate(header: str) -> StateMember | None:
    """Read our member; None if there is none."""
    for member in header.split(",", _MAX_MEMBERS)[:_MAX_MEMBERS]:
        key, _, value = member.strip().partition("=")
        if key == _KEY and value and len(value) <= _MAX_VALUE:
            return _parse(value)
    return None


def _parse(value: str) -> StateMember:
    parts: dict[str, str] = {}
    for part in value.split(";"):
        letter, _, text = part.partition(":")
        parts.setdefault(letter, text)
    return StateMember(
        run=_unescape(parts.get("r")),
        step=read_whole(parts.get("t")),
        task_key=_unescape(parts.get("k")),
        group=_unescape(parts.get("g")),
        session_id=read_span_id(parts.get("s")),
        sample=read_whole(parts.get("n")),
    )


def _escape(text: str) -> str:
    """Write text in the few characters that nobody on the way takes for something else."""
    if _PLAIN.fullmatch(text):
        return text
    data = text.encode("utf-8", "backslashreplace")
    return "".join(chr(b) if _PLAIN.fullmatch(chr(b)) else f"%{b:02X}" for b in data)


def _unescape(text: str | None) -> str | None:
    if not text or "%" not in text:
        return text or None
    data = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    try:
        return data.encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:  # was not written by us
        return None
