"""What the lines of XTuner's sandbox come to: sessions, how they ended, whose tasks they are."""

from array import array
from typing import Any, Final, NamedTuple

from rollscope.importing.statuses import read_status
from rollscope.importing.values import decode_object, millis_to_ns, seconds_to_ns
from rollscope.importing.xtuner_pairs import INSTANT, MOST_NS, WHOLE, Pairs, Stage, What
from rollscope.model.kinds import STATUS_CODES, Status
from rollscope.otlp.aliases import whole_number

__all__ = ["TOTAL", "VERDICT", "Ended", "Survey", "is_call", "name_of", "read_time"]

TOTAL: Final = "run_total"
VERDICT: Final = "verdict"
_STAGES: Final = {
    TOTAL: Stage(0),
    "acquire": Stage(1, "acquire"),
    "infer": Stage(1, "generate"),
    "validate": Stage(1, "reward"),
}
_ENTRY: Final = "entry:"
_OPEN: Final = STATUS_CODES[Status.OPEN]


def _stage_of(name: str) -> Stage:
    return _STAGES.get(name) or Stage(2 if name.startswith(_ENTRY) else 3)


def name_of(value: object) -> str | None:
    """Give the name of a session or task, the same for every spelling of a number."""
    if value is None or value == "" or isinstance(value, bool | list | dict):
        return None
    number = whole_number(value)
    return str(value if number is None else number)


def read_time(record: dict[str, Any]) -> int | None:
    """Give when a line was written; None if it does not say so."""
    at_ns = seconds_to_ns(record.get("ts"))
    return at_ns if at_ns is not None and 0 < at_ns < MOST_NS else None


def is_call(record: dict[str, Any]) -> bool:
    """Say whether a line tells of a call of the model, which names no session."""
    return "total_ms" in record and "rollout_ms" in record


class Ended(NamedTuple):
    """What became of a session."""

    start_ns: int
    end_ns: int
    """0 while open."""
    teller: int
    """The event that says most about it."""
    is_failed: bool
    is_guessed: bool
    """Whether it ended without saying when."""


class Survey:
    """Looks at all lines, then knows the sessions."""

    def __init__(self) -> None:
        self.pairs = Pairs(_stage_of)
        self.tasks: dict[int, tuple[str, str | None]] = {}
        """By session: the key of its task, and its group."""
        self._ended = tuple(array(kind) for kind in "qqibb")
        self.sample = array("i")

    def look(self, place: int, raw: bytes) -> None:
        """Take what is needed of a line."""
        read = decode_object(raw)
        if read is None or "_encode_error" in read[0]:
            return
        record = read[0]
        uid, at_ns = name_of(record.get("uid")), read_time(record)
        if uid is None or at_ns is None:
            return
        name, what = _edge(record)
        if not name:
            return
        length = millis_to_ns(record.get("duration_ms")) if what != What.START else None
        at = self.pairs.add(place, raw, uid, name, what, at_ns, length)
        if what == What.ERROR:
            self.pairs.note_error(at, record.get("err"))
        self._note_task(self.pairs.owners[at], record)

    def _note_task(self, session: int, record: dict[str, Any]) -> None:
        known = self.tasks.get(session, ("", None))
        group = name_of(record.get("group_id")) or known[1]
        key = group or name_of(record.get("task_id")) or known[0]
        if key:
            self.tasks[session] = (key, group)

    def settle(self) -> None:
        """Judge every session, and number those of each task."""
        count = len(self.pairs.sessions)
        self._ended = (
            *(array("q", bytes(8 * count)) for _ in range(2)),
            array("i", bytes(4 * count)),
            *(array("b", bytes(count)) for _ in range(2)),
        )
        self.sample = array("i", bytes(4 * count))
        self.pairs.settle(self._judge)
        order = sorted(range(count), key=lambda one: (self._ended[0][one], one))
        members: dict[str, int] = {}
        for session in order:
            if session in self.tasks:
                key = self.tasks[session][0]
                self.sample[session] = members[key] = members.get(key, -1) + 1

    def ended(self, session: int) -> Ended:
        """Say what became of a session."""
        return Ended(*(column[session] for column in self._ended))  # type: ignore[arg-type]

    def _judge(self, session: int, events: list[int]) -> None:
        pairs = self.pairs
        verdicts = [at for at in events if pairs.is_named(at, VERDICT)]
        totals = [at for at in events if pairs.is_named(at, TOTAL) and pairs.fate[at] == WHOLE]
        start = min(pairs.begin[at] for at in events)
        told = verdicts[-1] if verdicts else totals[-1] if totals else events[-1]
        ends = [pairs.end(at) for at in totals]
        if verdicts and not totals:
            ends = [pairs.end(at) for at in events if pairs.fate[at] in (WHOLE, INSTANT)]
        is_failed = bool(totals) and pairs.whats[totals[-1]] == What.ERROR
        is_guessed = bool(ends) and not totals
        fate = (start, max([*ends, start]) if ends else 0, told, is_failed, is_guessed)
        for column, value in zip(self._ended, fate, strict=True):
            column[session] = value


def _edge(record: dict[str, Any]) -> tuple[str, int]:
    """Say what a line is about, and what happened; empty if it is about nothing known."""
    event, stage = record.get("event"), record.get("stage")
    if event in ("enter", "exit") and isinstance(stage, str) and stage:
        if event == "enter":
            return stage, What.START
        return stage, What.ERROR if record.get("ok") is False else What.END
    if "final" in record:
        word = record["final"]
        is_over = isinstance(word, str) and read_status(word, has_end=True).status != _OPEN
        return (VERDICT, What.INSTANT) if is_over else ("", What.INSTANT)
    return "", What.INSTANT
