"""Log records that say something of a span: a reward, or that it has begun. No others are kept."""

from typing import Final

from rollscope.model.batch import Fact
from rollscope.otlp.aliases import first_number
from rollscope.otlp.forms import LogForm, Request, SpanForm
from rollscope.otlp.placing import Placer
from rollscope.otlp.spanrows import EVALUATION
from rollscope.otlp.traces import EARLIEST_NS, LATEST_AHEAD_NS
from rollscope.otlp.writing import Books

__all__ = ["take_logs"]

_STARTS: Final = frozenset({"span.start", "otel.span.start", "rollscope.span.start"})
_TRACE_BYTES: Final = 16
_UNUSED: Final = "is neither gen_ai.evaluation.result nor the start of a span"


def take_logs(request: Request, placer: Placer, books: Books, now_ns: int) -> None:
    """Put rewards into the books, and the spans that have begun among those of the request."""
    for record in request.logs:
        if len(record.trace_id) != _TRACE_BYTES or not record.span_id:
            request.reject(_UNUSED if not record.name else "names no span")
        elif record.name == EVALUATION:
            _take_reward(record, request, placer, books, now_ns)
        elif record.name in _STARTS:
            request.spans.append(_started(record))
        else:
            request.reject(_UNUSED)


def _take_reward(
    record: LogForm, request: Request, placer: Placer, books: Books, now_ns: int
) -> None:
    place = placer.place_of(record.trace_id, record.span_id)
    reward = first_number(record.attrs.get("gen_ai.evaluation.score.value"))
    if place is None or place.session_id is None or reward is None:
        request.reject("tells no reward of a session that is known")
        return
    is_sound = EARLIEST_NS <= record.time_ns <= now_ns + LATEST_AHEAD_NS
    at_ns = record.time_ns if is_sound else now_ns
    book = books.book(place.run, record.sender)
    book.facts.append(Fact(place.trace_id, place.session_id, at_ns, {"reward": float(reward)}))


def _started(record: LogForm) -> SpanForm:
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
