"""Questions about sessions: finding them, and what one of them did."""

from typing import Final

import msgspec

from rollscope.answers.compare import Selection, compare_selection
from rollscope.answers.parameters import ENDED, FILTER, SCOPE, SINCE, UNTIL, moment, number, text
from rollscope.answers.question import Given, Question
from rollscope.answers.session import SessionAnswer, one_session
from rollscope.answers.sessions import SessionList, list_sessions
from rollscope.store.embedded import RunStore

__all__ = ["ABOUT_SESSIONS"]


def _sessions(source: RunStore, given: Given) -> SessionList:
    return list_sessions(
        source,
        given.scope("scope"),
        given.text("filter"),
        given.text("sort"),
        given.number("limit"),
        given.maybe_number("since_ns"),
        given.maybe_number("until_ns"),
        given.number("offset"),
        given.ended(),
    )


ABOUT_SESSIONS: Final[tuple[Question, ...]] = (
    Question(
        name="select",
        doc="what is different about the sessions that a filter lets through",
        parameters=(
            SCOPE,
            FILTER,
            moment("from_ns", "only those that started then or later"),
            moment("to_ns", "only those that started before"),
            msgspec.structs.replace(
                FILTER, name="against", doc="what they are held against; none: all others"
            ),
        ),
        answer=Selection,
        make=lambda source, given: compare_selection(
            source,
            given.scope("scope"),
            given.filter("filter"),
            (given.maybe_number("from_ns"), given.maybe_number("to_ns")),
            against=given.filter("against"),
        ),
    ),
    Question(
        name="session",
        doc="what one rollout did, and what became of it",
        parameters=(text("session", None, "its id, or task and sample as task#3"),),
        answer=SessionAnswer,
        make=lambda source, given: one_session(source, given.text("session")),
    ),
    Question(
        name="sessions",
        doc="sessions by steps, time and a filter, in any order",
        parameters=(
            SCOPE,
            FILTER,
            text("sort", "-start", "by what; - turns it"),
            number("limit", 15, 1000, "how many"),
            SINCE,
            UNTIL,
            number("offset", 0, 100_000_000, "how many to leave out before them", least=0),
            *ENDED,
        ),
        answer=SessionList,
        make=_sessions,
    ),
)
