"""Asks a run everything that its report tells, and writes the answers in few bytes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from rollscope.answers.encoding import encode_answer
from rollscope.answers.payloads import session_payloads
from rollscope.answers.questions import QUESTIONS
from rollscope.answers.session import one_session
from rollscope.answers.sessions import SessionLine
from rollscope.answers.turns import turns_of
from rollscope.errors import CommandError
from rollscope.model.refs import span_hex
from rollscope.reports.compact import Compactor, KnownSessions
from rollscope.reports.plan import Asked, key_of
from rollscope.reports.shortids import ShortIds
from rollscope.store.embedded import RunStore

__all__ = ["Answers"]


class Answers:
    """The answers of a report, by the keys that its page finds them by."""

    def __init__(
        self,
        store: RunStore,
        lines: list[SessionLine],
        names: ShortIds,
        unit_ns: int,
    ) -> None:
        self._store = store
        self._names = names
        self._asked: dict[tuple[str, tuple[tuple[str, str], ...]], Any] = {}
        table = _table(lines, names)
        ids = [line["row"]["span_id"] for line in table]
        self._compact = Compactor(KnownSessions(ids, table), unit_ns)
        self.sessions: Final = Compactor(unit_ns=unit_ns).write(_without_ends(table))

    def raw(self, asked: Asked) -> Any:  # noqa: ANN401  (an answer as JSON says it)
        """Ask a question; None if the run has no answer to it."""
        told = (asked.name, tuple(sorted(asked.truly.items())))
        if told not in self._asked:
            self._asked = {told: self._ask(asked)}  # the last, which several keys may mean
        return self._asked[told]

    def block(
        self, questions: Iterable[Asked], changes: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Iterator[tuple[str, Any]]:
        """Give the answers to some questions, each with its key.

        Args:
            questions: What to ask.
            changes: Fields of answers, by their keys, that the report says otherwise.
        """
        for asked in questions:
            answer = self.raw(asked)
            if answer is not None:
                told = {**answer, **(changes or {}).get(asked.key, {})}
                yield asked.key, self._compact.write(told)

    def of_session(self, session_id: int, *, payloads: bool) -> Iterator[tuple[str, Any]]:
        """Give everything about one session, what was said in it only if asked to."""
        wanted = span_hex(session_id)
        session = one_session(self._store, wanted)
        told: dict[str, msgspec.Struct] = {
            "session": session,
            "turns": turns_of(self._store, session),
        }
        if payloads:
            told["payloads"] = session_payloads(self._store, wanted)
        for name, answer in told.items():
            key = key_of(name, {"session": self._names.name(session_id)})
            yield key, self._compact.write(self._json(answer))

    def _ask(self, asked: Asked) -> Any:  # noqa: ANN401
        try:
            answer = QUESTIONS[asked.name].ask(self._store, asked.truly)
        except CommandError:
            return None
        return self._json(answer)

    def _json(self, answer: msgspec.Struct) -> Any:  # noqa: ANN401
        return self._names.rename(msgspec.json.decode(encode_answer(answer)))


def _table(lines: list[SessionLine], names: ShortIds) -> list[dict[str, Any]]:
    """Give lines as `encode_answer` would, which looks at every field of every line for ids."""
    table: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(lines))
    for line in table:
        row = line["row"]
        row["span_id"] = names.name(row["span_id"])
        row["process"] = span_hex(row["process"])
    return table


def _without_ends(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what follows from the rest: when a session ended."""
    return [
        {**line, "row": {key: item for key, item in line["row"].items() if key != "end_ns"}}
        for line in table
    ]
