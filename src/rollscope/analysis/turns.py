"""The turns of a session: its spans in the order of a conversation.

Only spans right below the session are divided; what lies inside of them goes along. A span that
has an attribute `turn` belongs to that turn. One that has none belongs to the turn of the last span
before it that has. If no span of the session says its turn, each generation begins a new turn;
generations that overlap are answers to the same question and share one. What comes before the first
turn is turn None: preparations.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rollscope.analysis.roles import role_of
from rollscope.analysis.rows import SpanRow

__all__ = ["EngineTime", "Turn", "VersionSegment", "engine_times", "find_turns", "version_segments"]


class Turn(msgspec.Struct, kw_only=True):
    """One turn, and the spans right below the session that it is made of."""

    number: int | None
    """As recorded, else counted from 0; None for what comes before the first."""
    start_ns: int
    end_ns: int | None
    """None while one of its spans is open."""
    is_counted: bool
    """Whether the number was counted because none is recorded."""
    phases: dict[str, int]
    """Time by name, lengths added up."""
    tokens_in: int | None
    tokens_out: int | None
    errors: int
    """Spans of it that failed, those inside of others included."""
    span_ids: list[int]
    """Their ids, in order of their start."""


class EngineTime(msgspec.Struct, kw_only=True):
    """A part of what an engine did for one generation."""

    span_id: int
    """The generation."""
    name: str
    """`queue`, `prefill` or `decode`."""
    start_ns: int
    end_ns: int | None
    is_derived: bool
    """Whether it is placed by lengths that the generation tells; else it is a span of its own."""


class VersionSegment(msgspec.Struct, kw_only=True):
    """Tokens of one generation that came from one version of the policy."""

    span_id: int
    version: int
    tokens: int | None
    start_ns: int
    end_ns: int | None
    is_part: bool
    """Whether the generation has other segments too; the times are those of all of it."""


Attrs = Mapping[int, Mapping[str, Any]]
"""The attributes of spans, by id."""


def find_turns(session_id: int, spans: Sequence[SpanRow], attrs: Attrs, now_ns: int) -> list[Turn]:
    """Divide the spans of a session into turns.

    Args:
        session_id: The session.
        spans: All spans of it, in any order.
        attrs: Their attributes.
        now_ns: Where open spans are cut off.
    """
    known = {span.span_id for span in spans}
    top = [one for one in spans if one.parent_id == session_id or one.parent_id not in known]
    top.sort(key=lambda one: (one.start_ns, one.span_id))
    numbers = [_whole(attrs.get(one.span_id, {}).get("turn")) for one in top]
    is_counted = all(number is None for number in numbers)
    places = _counted(top) if is_counted else _recorded(numbers)
    inside = _failures_inside(spans, known)
    members: dict[int | None, list[SpanRow]] = {}
    for span, place in zip(top, places, strict=True):
        members.setdefault(place, []).append(span)
    return [
        _turn(place, group, attrs, inside, now_ns, is_counted=is_counted)
        for place, group in members.items()
    ]


def _recorded(numbers: Sequence[int | None]) -> list[int | None]:
    places: list[int | None] = []
    current = None
    for number in numbers:
        current = current if number is None else number
        places.append(current)
    return places


def _counted(top: Sequence[SpanRow]) -> list[int | None]:
    places: list[int | None] = []
    current: int | None = None
    generating_until: float = -1
    for span in top:
        if role_of(span.name) == "generate":
            if span.start_ns >= generating_until:
                current = 0 if current is None else current + 1
            end = float("inf") if span.end_ns is None else span.end_ns
            generating_until = max(generating_until, end)
        places.append(current)
    return places


def _failures_inside(spans: Sequence[SpanRow], known: set[int]) -> dict[int, int]:
    """Count the spans that failed, for each span right below the session, itself included."""
    parent_of = {one.span_id: one.parent_id for one in spans}
    counts: dict[int, int] = {}
    for span in spans:
        if span.status != "error":
            continue
        at, passed = span.span_id, {span.span_id}
        while True:
            above = parent_of.get(at)
            if above is None or above not in known or above in passed:
                break
            passed.add(above)
            at = above
        counts[at] = counts.get(at, 0) + 1
    return counts


def _turn(
    number: int | None,
    spans: Sequence[SpanRow],
    attrs: Attrs,
    failures: Mapping[int, int],
    now_ns: int,
    *,
    is_counted: bool,
) -> Turn:
    phases: dict[str, int] = {}
    for span in spans:
        length = max((now_ns if span.end_ns is None else span.end_ns) - span.start_ns, 0)
        phases[span.name] = phases.get(span.name, 0) + length
    ends = [span.end_ns for span in spans]
    given = [_whole(attrs.get(span.span_id, {}).get("tokens_in")) for span in spans]
    made = [span.tokens for span in spans]
    return Turn(
        number=number,
        start_ns=spans[0].start_ns,
        end_ns=None if None in ends else max(end for end in ends if end is not None),
        is_counted=is_counted,
        phases=phases,
        tokens_in=_total(given),
        tokens_out=_total(made),
        errors=sum(failures.get(span.span_id, 0) for span in spans),
        span_ids=[span.span_id for span in spans],
    )


def _total(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _seconds_ns(value: object) -> int | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return round(value * 1e9) if is_number and 0 <= value < 1e9 else None  # type: ignore[operator]


_ENGINE_NAMES = {"queue": "queue", "queue_wait": "queue", "prefill": "prefill", "decode": "decode"}


def engine_times(spans: Sequence[SpanRow], attrs: Attrs) -> list[EngineTime]:
    """Tell what engines did inside of generations: queue, prefill and decode.

    They are spans below a generation, or lengths that it tells: `queue_s`, `prefill_s`, `decode_s`,
    or `ttft_s`, the time to the first token, which ends prefill. Lengths are placed one behind the
    other, and cut off at the end of the generation.
    """
    generations = [one for one in spans if role_of(one.name) == "generate"]
    by_id = {one.span_id: one for one in generations}
    found: list[EngineTime] = []
    told: set[int] = set()
    for span in spans:
        name = _ENGINE_NAMES.get(span.name)
        if name is not None and span.parent_id in by_id and span.parent_id is not None:
            told.add(span.parent_id)
            found.append(
                EngineTime(
                    span_id=span.parent_id,
                    name=name,
                    start_ns=span.start_ns,
                    end_ns=span.end_ns,
                    is_derived=False,
                )
            )
    for span in generations:
        if span.span_id not in told and span.end_ns is not None and span.name != "prefill":
            found += _derived(span, span.end_ns, attrs.get(span.span_id, {}))
    found.sort(key=lambda one: (one.start_ns, one.span_id))
    return found


def _derived(span: SpanRow, end_ns: int, attrs: Mapping[str, Any]) -> list[EngineTime]:
    queue = span.queue_ns if span.queue_ns is not None else _seconds_ns(attrs.get("queue_s"))
    prefill = _seconds_ns(attrs.get("prefill_s"))
    first = _seconds_ns(attrs.get("ttft_s"))
    decode = _seconds_ns(attrs.get("decode_s"))
    if prefill is None and first is not None:
        prefill = max(first - (queue or 0), 0)
    if queue is None and prefill is None and decode is None:
        return []
    parts: list[EngineTime] = []
    at = span.start_ns
    left = None if prefill is None else end_ns - span.start_ns - (queue or 0) - prefill
    for name, length in (("queue", queue), ("prefill", prefill), ("decode", decode or left)):
        if length is not None and length > 0 and at < end_ns:
            until = min(at + length, end_ns)
            parts.append(
                EngineTime(
                    span_id=span.span_id, name=name, start_ns=at, end_ns=until, is_derived=True
                )
            )
            at = until
    return parts


def version_segments(spans: Sequence[SpanRow], attrs: Attrs) -> list[VersionSegment]:
    """Tell which versions of the policy the generations of a session came from.

    A generation says one version, or in `versions` which version made how many tokens, as pairs
    or as a map.
    """
    found: list[VersionSegment] = []
    for span in sorted(spans, key=lambda one: (one.start_ns, one.span_id)):
        if role_of(span.name) != "generate":
            continue
        own = attrs.get(span.span_id, {})
        parts = _version_parts(own.get("versions"))
        version = span.version if span.version is not None else _whole(own.get("version"))
        if not parts and version is not None:
            parts = [(version, span.tokens)]
        found += [
            VersionSegment(
                span_id=span.span_id,
                version=one,
                tokens=tokens,
                start_ns=span.start_ns,
                end_ns=span.end_ns,
                is_part=len(parts) > 1,
            )
            for one, tokens in parts
        ]
    return found


def _version_parts(told: object) -> list[tuple[int, int | None]]:
    if isinstance(told, Mapping):
        told = [[_number_of(key), value] for key, value in told.items()]
    if not isinstance(told, list):
        return []
    parts: list[tuple[int, int | None]] = []
    for one in told:
        if isinstance(one, list) and len(one) == 2:
            version, tokens = _whole(one[0]), _whole(one[1])
            if version is not None:
                parts.append((version, tokens))
    return parts


def _number_of(key: object) -> int | None:
    text = str(key)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
