"""How a foreign span ended: status, outcome and reason in our words."""

from typing import Any, Final, NamedTuple

from rollscope.instrument.sanitise import clean_text
from rollscope.model.kinds import STATUS_CODES, Outcome, Status
from rollscope.otlp.aliases import Meaning
from rollscope.otlp.forms import Attrs, SpanForm

__all__ = ["Ending", "ending_of", "is_known_word"]

_ERROR_CODE: Final = 2
_TEXT_BYTES: Final = 512
_SAID: Final[dict[str, tuple[Status, Outcome | None]]] = {
    **dict.fromkeys(("completed", "success", "ok", "finished", "done"), (Status.OK, None)),
    **dict.fromkeys(("accepted", "effective", "archived"), (Status.OK, Outcome.ACCEPTED)),
    **dict.fromkeys(("rejected", "filtered", "empty"), (Status.OK, Outcome.REJECTED)),
    **dict.fromkeys(
        ("failed", "failure", "error", "exception", "capacity_exhausted", "skipped"),
        (Status.ERROR, Outcome.FAILED),
    ),
    **dict.fromkeys(("timeout", "timed_out"), (Status.ERROR, Outcome.TIMEOUT)),
    **dict.fromkeys(("dropped", "expired", "stale"), (Status.OK, Outcome.DROPPED)),
    **dict.fromkeys(("cancelled", "canceled", "aborted"), (Status.CANCELLED, Outcome.CANCELLED)),
}
_CANCELLED_TYPES: Final = frozenset({"CancelledError", "asyncio.exceptions.CancelledError"})
_PLAIN_WORDS: Final = frozenset(_SAID) - frozenset(Outcome)


class Ending(NamedTuple):
    """How a span ended."""

    status: int
    """Its code in a frame."""
    outcome: str | None
    """Of a session only."""
    reason: str | None


def is_known_word(word: str) -> bool:
    """Say whether a word for an end is one that we know."""
    return word.lower() in _SAID


def ending_of(form: SpanForm, meaning: Meaning, details: Attrs, *, is_session: bool) -> Ending:
    """Say how a span ended, and note the error among its attributes.

    What the span says in words comes before the status of OpenTelemetry, which is left unset where
    a failure is returned and not raised.
    """
    if meaning.is_told:
        return _told_ending(form, meaning)
    _note_exception(form, details)
    if form.is_open:
        return Ending(STATUS_CODES[Status.OPEN], None, None)
    said = meaning.place.get("outcome")
    if said is None and is_session:
        said = details.get("status")
    known = _SAID.get(said.lower()) if isinstance(said, str) else None
    kind, message = details.get("error.type"), details.get("error.message") or form.message
    if known is not None:
        status, outcome = known
    elif form.status == _ERROR_CODE:
        cancelled = kind in _CANCELLED_TYPES
        status = Status.CANCELLED if cancelled else Status.ERROR
        outcome = Outcome.CANCELLED if cancelled else Outcome.FAILED
    else:
        status, outcome = Status.OK, None
    if isinstance(said, str) and (known is None or said.lower() in _PLAIN_WORDS):
        details["source_status"] = said
    reason = meaning.place.get("reason")
    if reason is None and status is not Status.OK:
        reason = _reason(kind, message)
    return Ending(
        STATUS_CODES[status],
        str(outcome) if outcome is not None and is_session else None,
        None if reason is None else clean_text(str(reason), _TEXT_BYTES),
    )


def _told_ending(form: SpanForm, meaning: Meaning) -> Ending:
    """Give the end that one of us has recorded."""
    given = meaning.place
    status = str(Status.OPEN if form.is_open else given.get("status"))
    known = Status(status) if status in set(Status) else Status.OK
    reason, outcome = given.get("reason"), str(given.get("outcome"))
    return Ending(
        STATUS_CODES[known],
        outcome if outcome in set(Outcome) else None,
        None if reason is None else clean_text(str(reason), _TEXT_BYTES),
    )


def _reason(kind: Any, message: Any) -> str | None:  # noqa: ANN401
    parts = [str(part) for part in (kind, message) if part]
    return ": ".join(parts) or None


def _note_exception(form: SpanForm, details: Attrs) -> None:
    """Take over what the last exception says; of a span that failed, it is why."""
    for event in form.events:
        if event.name == "exception":
            for name in ("type", "message"):
                value = event.attrs.get(f"exception.{name}")
                if value:
                    details.setdefault(f"error.{name}", value)
    if form.status == _ERROR_CODE and form.message:
        details.setdefault("error.message", form.message)
