"""What foreign words for an end mean, as data."""

from typing import Any, Final, NamedTuple

from rollscope.model.kinds import STATUS_CODES, Outcome, Status

__all__ = ["Verdict", "read_reason", "read_status"]


class Verdict(NamedTuple):
    """How something ended."""

    status: int
    outcome: Outcome | None
    is_known: bool = True


_WORDS: Final[dict[tuple[Status, Outcome | None], str]] = {
    (Status.OPEN, None): "pending init queued scheduled started running open",
    (Status.OK, None): "completed success ok finished done",
    (Status.OK, Outcome.ACCEPTED): "accepted effective archived",
    (Status.OK, Outcome.REJECTED): "rejected filtered empty",
    (Status.ERROR, Outcome.FAILED): "failed failure error exception capacity_exhausted skipped",
    (Status.ERROR, Outcome.TIMEOUT): "timeout timed_out",
    (Status.OK, Outcome.DROPPED): "dropped expired stale",
    (Status.CANCELLED, Outcome.CANCELLED): "cancelled aborted",
}
_VERDICTS: Final = {
    word: Verdict(STATUS_CODES[status], outcome)
    for (status, outcome), words in _WORDS.items()
    for word in words.split()
}
_REASONS: Final = {
    "rejected": "filtered",
    "should_accept_false": "filtered",
    "workflow_returned_none": "returned_none",
    "workflow_exception": "exception",
    "input_queue_full": "overload",
}


def read_status(word: Any, *, has_end: bool) -> Verdict:  # noqa: ANN401
    """Say what a status means; an unknown word says no more than that it ended, or did not."""
    if type(word) is str:
        found = _VERDICTS.get(word) or _VERDICTS.get(word.strip().lower())
        if found is not None:
            return found
    return Verdict(STATUS_CODES[Status.OK if has_end else Status.OPEN], None, word is None)


def read_reason(word: Any) -> str | None:  # noqa: ANN401
    """Give the short code of a reason."""
    if not isinstance(word, str) or not word:
        return None
    return _REASONS.get(word, word)[:128]
