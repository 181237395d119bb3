"""Log records that say something of a span: a reward, or that it has begun. No others are kept."""

from enum import StrEnum
from typing import Final

from rollscope.model.batch import Fact
from rollscope.otlp.aliases import first_number
from rollscope.otlp.forms import LogForm, Request, SpanForm
from rollscope.otlp.placing import Place, Placer
from rollscope.otlp.spanrows import EVALUATION
from rollscope.otlp.traces import EARLIEST_NS, LATEST_AHEAD_NS
from rollscope.otlp.writing import Books

__all__ = ["UNKNOWN_SESSION", "LogUse", "log_use", "reward_fact", "started_span", "take_logs"]

_STARTS: Final = frozenset({"span.start", "otel.span.start", "rollscope.span.start"})
_TRACE_BYTES: Final = 16
UNKNOWN_SESSION: Final = "tells no reward of a session that is known"


class LogUse(StrEnum):
    """What a record is good for."""

    REWARD = "reward"
    START = "start"
    UNUSED = "is neither gen_ai.evaluation.result nor the start of a span"
    NAMELESS = "names no span"


def log_use(record: LogForm) -> LogUse:
    """Say what a record is good for."""
    if len(record.trace_id) != _TRACE_BYTES or not record.span_id:
        return LogUse.NAMELESS if record.name else LogUse.UNUSED
    if record.name == EVALUATION:
        return LogUse.REWARD
    return LogUse.START if record.name in _STARTS else LogUse.UNUSED


def take_logs(request: Request, placer: Placer, books: Books, now_ns: int) -> None:
    """Put rewards into the books, and the spans that have begun among those of the request."""
    for record in request.logs:
        use = log_use(record)
        if use is LogUse.REWARD:
            _take_reward(record, request, placer, books, now_ns)
        elif use is LogUse.START:
            request.spans.append(started_span(record))
        else:
            request.reject(use)


def _take_reward(
    record: LogForm, request: Request, placer: Placer, books: Books, now_ns: int
) -> None:
    place = placer.place_of(record.trace_id, record.span_id)
    fact = reward_fact(record, place, now_ns)
    if place is None or fact is None:
        request.reject(UNKNOWN_SESSION)
        return
    books.book(place.run, record.sender).facts.append(fact)


def reward_fact(record: LogForm, place: Place | None, now_ns: int) -> Fact | None:
    """Give what a record tells of a session; None if that is nothing.

    Args:
        record: The record.
        place: Where the span belongs that it names; None if that is not known.
        now_ns: When it was received.
    """
    reward = first_number(record.attrs.get("gen_ai.evaluation.score.value"))
    if place is None or place.session_id is None or reward is None:
        return None
    is_sound = EARLIEST_NS <= record.time_ns <= now_ns + LATEST_AHEAD_NS
    at_ns = record.time_ns if is_sound else now_ns
    return Fact(place.trace_id, place.session_id, at_ns, {"reward": float(reward)})


def started_span(record: LogForm) -> SpanForm:
    """Give the span that a record says has begun."""
    attrs = dict(record.attrs)
    name, parent = attrs.pop("span.name", ""), attrs.pop("parent_span_id", "")
    try:
        parent_id = int(str(parent) or "0", 16)
    except ValueError:
        parent_id = 0
    return SpanForm(
        sender=record.sender,
        scope="",
        trace_id=record.trace_id,
        span_id=record.span_id,
        parent_id=parent_id if 0 <= parent_id < 2**64 else 0,
        name=str(name),
        kind=0,
        start_ns=record.time_ns,
        end_ns=0,
        attrs=attrs,
    )
