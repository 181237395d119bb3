"""One placed span as rows: itself, its events, and what it tells of its session."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from rollscope.instrument.sanitise import clean_text
from rollscope.model.batch import Fact, Payload
from rollscope.model.kinds import EVENT_CODE, KIND_CODES, STATUS_CODES, Kind, Status
from rollscope.model.undecodable import UNDECODABLE
from rollscope.otlp.aliases import Meaning, first_number, whole_number
from rollscope.otlp.endings import Ending, ending_of
from rollscope.otlp.forms import Attrs, SpanForm
from rollscope.otlp.placing import MadeSession, Place
from rollscope.otlp.rows import Row, fit_attrs
from rollscope.otlp.spankinds import SpanKind
from rollscope.otlp.told import recorded_events

__all__ = [
    "EVALUATION",
    "PlacedSpan",
    "content_payloads",
    "event_rows",
    "made_row",
    "session_facts",
    "span_row",
]

EVALUATION: Final = "gen_ai.evaluation.result"
_SESSION: Final = KIND_CODES[Kind.SESSION]
_OK: Final = STATUS_CODES[Status.OK]
_OPEN: Final = Ending(STATUS_CODES[Status.OPEN], None, None)
_PAYLOAD_BYTES: Final = 262_144
_NAME_BYTES: Final = 512
_as_json = msgspec.json.Encoder().encode


class PlacedSpan(NamedTuple):
    """A span, and all that was found out about it."""

    form: SpanForm
    meaning: Meaning
    place: Place
    kind: SpanKind
    parent_id: int
    """0 for none; the root of a made session is below it."""

    @property
    def is_session(self) -> bool:
        """Whether it is a session itself."""
        return self.kind.code == _SESSION


def span_row(span: PlacedSpan) -> Row:
    """Give the row of a span."""
    form, meaning, place, kind, parent_id = span
    attrs = meaning.details
    ending = ending_of(form, meaning, attrs, is_session=span.is_session)
    if not meaning.is_told:
        _note_source(span, attrs)
    return Row(
        kind.code,
        ending.status,
        kind.name,
        place.scope,
        form.span_id,
        parent_id,
        form.start_ns,
        _end_ns(form, attrs),
        fit_attrs(attrs),
        _fields(meaning, ending),
    )


def _note_source(span: PlacedSpan, attrs: Attrs) -> None:
    """Note what the sender called things that have another name, or a place of their own, now."""
    form, given = span.form, span.meaning.place
    if span.kind.name != form.name:
        attrs["source_name"] = form.name
    if form.links:
        attrs["links"] = form.links
    for name in ("stage", "stage.name") if "phase" in given else ():
        if name in form.attrs and form.attrs[name] != span.kind.name:
            attrs[name] = form.attrs[name]
    if span.is_session:
        called = given.get("session") or given.get("conversation")
        if called:
            attrs["session_id"] = str(called)


def made_row(made: MadeSession, noted: Attrs | None = None) -> Row:
    """Give the row of a made session: open, or as its root ended.

    Args:
        made: The session.
        noted: More to be said of it.
    """
    session, root, meaning = made
    attrs: Attrs = dict(noted or {})
    ending, end_ns, fields, start_ns = _OPEN, 0, dict[str, Any](), session.start_ns
    if root is not None and meaning is not None:
        attrs |= meaning.details
        ending = ending_of(root, meaning, attrs, is_session=True)
        fields = _fields(meaning, ending)
        start_ns = min(start_ns, root.start_ns)
        end_ns = max(_end_ns(root, attrs), start_ns)
    if session.place.session:
        attrs["session_id"] = session.place.session
    return Row(
        _SESSION,
        ending.status,
        str(Kind.SESSION),
        session.place.scope,
        session.session_id,
        0,
        start_ns,
        end_ns,
        fit_attrs(attrs),
        fields,
    )


def _fields(meaning: Meaning, ending: Ending) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    given = meaning.place
    if "lane" in given:
        fields["lane"] = clean_text(str(given["lane"]), _NAME_BYTES)
    both = None if meaning.is_told else meaning.details.get("version")
    for name in ("version_start", "version_end"):
        version = given.get(name, both)
        if version is not None and (number := whole_number(version)) is not None:
            fields[name] = number
    if ending.reason is not None:
        fields["reason"] = ending.reason
    if ending.outcome is not None:
        fields["outcome"] = ending.outcome
    return fields


def _end_ns(form: SpanForm, attrs: Attrs) -> int:
    """Give the end, 0 while open; one before the start is kept beside a length of nothing."""
    if form.is_open:
        return 0
    if form.end_ns < form.start_ns:
        attrs["clock_suspect"] = True
        attrs["source_end_ns"] = form.end_ns
        return form.start_ns
    return form.end_ns


def event_rows(span: PlacedSpan, least_ns: int, most_ns: int, ids: Iterator[int]) -> list[Row]:
    """Give the events of a span, but for the exception that ended it, which is its reason.

    Args:
        span: The span.
        least_ns: Events before that are placed at the start of the span.
        most_ns: And so are those after that.
        ids: Where their ids come from.
    """
    form, meaning = span.form, span.meaning
    is_failed = not meaning.is_told and (form.status != 0 or "outcome" in meaning.place)
    rows = []
    for event in recorded_events(form, meaning):
        if event.name == "exception" and is_failed:
            continue
        time_ns = event.time_ns if least_ns <= event.time_ns <= most_ns else form.start_ns
        rows.append(
            Row(
                EVENT_CODE,
                _OK,
                clean_text(event.name, _NAME_BYTES) or "event",
                span.place.scope,
                next(ids),
                form.span_id,
                time_ns,
                time_ns,
                fit_attrs(event.attrs),
                {},
            )
        )
    return rows


def session_facts(span: PlacedSpan) -> list[Fact]:
    """Give what a span tells of its session: a reward, the step that consumed it.

    One that another Rollscope exported tells what was learned later about itself.
    """
    about, given = span.place.session_id, span.meaning.place
    facts: dict[str, Any] = {}
    if span.meaning.is_told:
        about, facts = span.form.span_id, given["late"]
    elif about is not None and not span.form.is_open:
        facts = _facts(span)
    if about is None or not facts:
        return []
    at_ns = whole_number(given.get("consumed_ns")) or max(span.form.end_ns, span.form.start_ns)
    return [Fact(span.place.trace_id, about, at_ns, facts)]


def _facts(span: PlacedSpan) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    reward = first_number(span.meaning.details.get("reward"))
    for event in span.form.events:
        if event.name == EVALUATION:
            reward = first_number(event.attrs.get("gen_ai.evaluation.score.value"))
    if reward is not None:
        facts["reward"] = float(reward)
    consumed = whole_number(span.meaning.place.get("consumed_step"))
    if consumed is not None:
        facts["consumed_step"] = consumed
    return facts


def content_payloads(span: PlacedSpan) -> list[Payload]:
    """Give what was said to and by a model, as payloads."""
    form = span.form
    payloads = []
    for name, value in span.meaning.content.items():
        text = value if isinstance(value, str) else _as_json(value).decode()
        kept = clean_text(text, _PAYLOAD_BYTES)
        if not _is_json(kept):
            kept = _as_json(kept).decode()
        payloads.append(
            Payload(
                form.trace_id,
                form.span_id,
                form.start_ns,
                clean_text(name, _NAME_BYTES),
                kept,
                len(kept) < len(text),
            )
        )
    return payloads


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except UNDECODABLE:
        return False
    return True
