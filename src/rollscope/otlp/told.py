"""Spans that another Rollscope exported: read back as they were recorded.

The exporter writes names that tools for OpenTelemetry look for, and beside them, under names of its
own, what those cannot say. A span that has the latter needs no guessing: nothing else in it places
it, and an attribute that its user called `step` is an attribute.
"""

from typing import Any, Final

from rollscope.instrument.sanitise import clean_attrs
from rollscope.model.kinds import Outcome, Status
from rollscope.otlp.aliases import Meaning, read_aliases, read_places, whole_number
from rollscope.otlp.forms import Attrs, EventForm, SpanForm
from rollscope.otlp.othernames import DETAILS, PLACES

__all__ = [
    "OWN",
    "SCOPE_NAME",
    "WAITS",
    "error_of",
    "meaning_of",
    "recorded_events",
    "written_name",
]

SCOPE_NAME: Final = "rollscope"
OWN: Final = "rollscope."
EVALUATION: Final = "gen_ai.evaluation.result"
WAITS: Final = ("runner_wait_s", "post_wait_s", "consume_wait_s", "clock_suspect")
_CANCELLED: Final = "CancelledError"
_NO_TYPES: Final = frozenset({*Outcome, "error", "lost", _CANCELLED})
_STATUS: Final = OWN + "status"
_COMMON: Final = ("gen_ai.", OWN)
_PREFERRED: Final = {"model": "gen_ai.request.model"}
"""Where the first name is not the one to write: all we know of a model is what was asked for."""
_LATE: Final = ("outcome", "reason", "reward", "version_end")
_FACT_BYTES: Final = 4096
_ADDED: Final = frozenset(
    {"gen_ai.operation.name", "gen_ai.conversation.id", "gen_ai.agent.name", OWN + "staleness"}
)
"""What the exporter adds for others, and can make again."""


def written_name(name: str) -> str:
    """Give the name under which a detail is written: a common one, or else our own."""
    if name in _PREFERRED:
        return _PREFERRED[name]
    return next((alias for alias in DETAILS[name] if alias.startswith(_COMMON)), name)


_DETAILS: Final = {
    **{written_name(name): name for name in DETAILS},
    **{OWN + name: name for name in WAITS},
    "gen_ai.tool.call.id": "tool_call_id",
}
_PLACES: Final = {
    alias: name
    for name, aliases in PLACES.items()
    for alias in aliases
    if alias.startswith((OWN, "logfire."))
}


def meaning_of(form: SpanForm, *, only_place: bool = False) -> Meaning:
    """Read what the attributes of a span mean, whoever sent it.

    Args:
        form: The span.
        only_place: Read no more than where it belongs.
    """
    if form.scope == SCOPE_NAME and _STATUS in form.attrs:
        return _read_told(form.attrs)
    return read_places(form.attrs) if only_place else read_aliases(form.attrs)


def _read_told(attrs: Attrs) -> Meaning:
    place: Attrs = {}
    details: Attrs = {}
    for key, value in attrs.items():
        known = _PLACES.get(key)
        if known is not None:
            place[known] = value
        elif key not in _ADDED:
            name = _DETAILS.get(key, key)
            if name == "finish" and isinstance(value, list) and len(value) == 1:
                value = value[0]
            details[name] = value
    _drop_added(place, details)
    _part_late(place, details)
    return Meaning(place, details, {}, PLACES["session"][0] if "session" in place else "", True)


def _drop_added(place: Attrs, details: Attrs) -> None:
    """Leave out what the exporter has made of the rest."""
    if details.get("family") == str(place.get("task_key")).partition("/")[0]:
        del details["family"]
    if "tokens" in details and details["tokens"] == details.get("tokens_out"):
        del details["tokens_out"]
    kind = details.get("error.type")
    # Who records a type records a message, too.
    if isinstance(kind, str) and ("error.message" not in details or kind in _NO_TYPES):
        made, _ = error_of(*(place.get(name) for name in ("status", "outcome", "reason")))
        if kind == made:
            del details["error.type"]


def error_of(status: object, outcome: object, reason: object) -> tuple[str, str]:
    """Give the type of an error and its message; a reason begins with the type, if there is one."""
    text = str(reason or "")
    if status == Status.CANCELLED:
        return _CANCELLED, text
    if status == Status.LOST:
        return str(Status.LOST), text
    kind, colon, message = text.partition(": ")
    if kind and kind.replace(".", "").replace("_", "").isalnum() and (colon or kind == text):
        return kind, message or text
    return str(outcome or "error"), text


def _part_late(place: Attrs, details: Attrs) -> None:
    """Take what became known after the end of a span out of it: it was a fact about it."""
    late = place.pop("late", None)
    facts: Attrs = {}
    for name in _LATE if isinstance(late, list) else ():
        held = details if name == "reward" else place
        if name in late and name in held:
            facts[name] = held.pop(name)
    consumed = whole_number(place.get("consumed_step"))
    if consumed is not None:
        facts["consumed_step"] = consumed
    others = place.pop("facts", None)
    told = {**others, **facts} if isinstance(others, dict) else facts
    place["late"] = clean_attrs(told, _FACT_BYTES) if told else {}


def recorded_events(form: SpanForm, meaning: Meaning) -> list[EventForm]:
    """Give the events of a span, without those that the exporter added for others."""
    events = form.events
    if not meaning.is_told:
        return events
    events = list(events)
    if events and events[-1].name == "exception" and meaning.place.get("status") == "error":
        events.pop()
    has_reward = "reward" in meaning.details or "reward" in meaning.place["late"]
    if events and events[-1].name == EVALUATION and has_reward:
        events.pop()
    return [EventForm(one.name, one.time_ns, _known(one.attrs)) for one in events]


def _known(attrs: Attrs) -> dict[str, Any]:
    return {_DETAILS.get(key, key): value for key, value in attrs.items()}
