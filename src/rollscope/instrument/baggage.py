"""Our members of the W3C `baggage` header: what the other side needs to know of a span's scope."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from rollscope.instrument.sanitise import clean_text, read_span_id, read_whole
from rollscope.model.refs import span_hex
from rollscope.model.scope import Scope

__all__ = ["format_baggage", "parse_baggage"]

_PREFIX: Final = "rollscope."
_MAX_HEADER: Final = 8192
_MAX_MEMBER: Final = 512
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.:/@~\-]*")
_SAFE: Final = ":/@"


def format_baggage(scope: Scope, others: str = "") -> str:
    """Write the header: the members of others, and ours behind them.

    Args:
        scope: What the span belongs to.
        others: The header as it was before.
    """
    ours = _own_members(scope)
    if not others:
        return ours
    members = [
        member
        for member in others.split(",")
        if member.strip() and not member.strip().startswith(_PREFIX)
    ]
    return ",".join([*members, ours] if ours else members)


def parse_baggage(trace_id: bytes, header: str) -> Scope:
    """Read our members.

    Args:
        trace_id: Which the other header names.
        header: The whole header; what is too long is left out.
    """
    if len(header) > _MAX_HEADER:
        header = header[:_MAX_HEADER].rpartition(",")[0]  # half a member would mislead
    members: dict[str, str] = {}
    for member in header.split(","):
        name, _, value = member.strip().partition("=")
        if name.startswith(_PREFIX):
            members[name.removeprefix(_PREFIX)] = _unescape(value.partition(";")[0])
    return Scope(
        trace_id,
        read_whole(members.get("step")),
        members.get("task"),
        members.get("group"),
        read_span_id(members.get("session")),
        read_whole(members.get("sample")),
    )


@lru_cache(maxsize=1024)  # a session asks many a time, and always for the same
def _own_members(scope: Scope) -> str:
    members = {
        "step": scope.step,
        "task": scope.task_key,
        "group": scope.group,
        "session": None if scope.session_id is None else span_hex(scope.session_id),
        "sample": scope.sample,
    }
    return ",".join(
        f"{_PREFIX}{name}={_escape(value)}" for name, value in members.items() if value is not None
    )


def _escape(value: object) -> str:
    # Made to fit as it is in the log, so that both sides name the same task, and short enough for
    # an environment variable.
    text = clean_text(value, _MAX_MEMBER)
    if _PLAIN.fullmatch(text):
        return text
    from urllib.parse import quote  # costs 5 ms, which not every program needs to pay

    return quote(text, safe=_SAFE)


def _unescape(text: str) -> str:
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text)
