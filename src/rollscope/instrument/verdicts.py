"""Words that a user gives and that must be known: verdicts of sessions, categories of spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rollscope.instrument.guard import tell_once
from rollscope.instrument.sanitise import clean_text
from rollscope.model.kinds import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["read_verdict", "tell_unknown"]

_OUTCOMES: Final = {str(outcome): outcome for outcome in Outcome}


def read_verdict(outcome: str, reason: str | None, version: int | None) -> dict[str, Any]:
    """Give the fields of a session that a verdict sets; an unknown outcome counts as failed."""
    fields: dict[str, Any] = {}
    try:
        fields["outcome"] = _OUTCOMES[outcome]
    except Exception:  # not only a KeyError: it may be any object
        given = tell_unknown("outcome", outcome, _OUTCOMES)
        fields["outcome"] = Outcome.FAILED
        fields["reason"] = f"unknown outcome {given!r}"
    if reason is not None:
        fields["reason"] = reason
    if version is not None:
        fields["version_end"] = version
    return fields


def tell_unknown(what: str, value: object, known: Iterable[str]) -> str:
    """Tell which words are known, once for each that is not; give the word as it can be shown."""
    given = clean_text(value, 100)
    tell_once(
        f"{what}:{given}",
        "Rollscope does not know the %s %r; known are: %s",
        what,
        given,
        ", ".join(known),
    )
    return given
